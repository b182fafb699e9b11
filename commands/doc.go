// Package commands is everything between the words of a command and the decision: the command table, parsing, every
// error text, and the translation between what a key holds and what package funnel knows.
//
// The host is package cgo, or package memory: a server in memory. Each host has an [Engine], which runs
// one handler at a time. A handler sees one [Call]: the words, the keys as the host loaded them, the time.
// It writes the reply and what is to become of the keys into the call. It asks the [Host] for nothing
// but entries of sorted sets. The contract of a handler is the comment on [Call].
//
// CONTRIBUTING.md says what a new command or option needs. The name of a twin that does not write ends in _RO.
//
// This package isn't an API: it may change with every version. Programs use the commands.
package commands
