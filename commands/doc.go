// Package commands is everything between the words of a command and the decision: the
// command table, parsing, every error text, and the translation between what a key holds
// and what package funnel knows.
//
// A handler sees one [Call]: the words, the keys as the host loaded them, the time. It leaves
// in the call the reply and what is to become of the keys. It asks the server for nothing but
// entries of sorted sets, through [TheHost]. The contract of a handler stands on [Call]. The
// host calls on one thread.
//
// A new command takes three things: a file with its [Command] row and handler, a line in
// [Table], and a section in docs/commands.md.
//
// This package is no API: it may change with every version. Programs use the commands.
package commands
