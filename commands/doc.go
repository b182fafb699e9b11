// Package commands is everything between the words of a command and the decision:
// the command table, parsing, every error text, and the translation between what
// a key holds and what package funnel knows.
//
// A handler sees one [Call]: the words, the keys as the host loaded them, the time.
// It leaves in it the reply and what is to become of the keys. It never talks to a
// server, never allocates and never keeps anything of the call: words and strings
// are the host's memory, borrowed until the handler returns. The host calls on one
// thread.
//
// A new command is one file with its [Command] row and handler, and its line in
// [Table].
package commands
