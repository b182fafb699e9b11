// Package script has the commands of the module as a Lua script, for servers that have not loaded it.
package script

import _ "embed"

//go:generate go run ./gen

// Text is the script. EVAL takes its keys first, then the words of a command without the first key.
//
//go:embed gothrottle.lua
var Text string
