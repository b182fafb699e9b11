package cgo

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"runtime"
	"strings"
	"unsafe"

	"gothrottle/commands"
)

// Version is the module's version, three numbers below 100 with dots between them.
// Package module sets it before the server can call.
var Version = "0.0.0"

// loaded is made by the first goLoad and kept: the library stays in the process even if the
// server undoes the load, and the server may load it again.
var loaded *C.shim_module

// goLoad returns the description of the module in C memory that is never freed.
//
//export goLoad
func goLoad() *C.shim_module {
	// The environment cannot set GOMAXPROCS: the server wipes its environment at start. If the
	// runtime has one processor only, its monitor keeps taking the processor away from the
	// server's thread, and a command costs 1.3 to 1.4 times as much.
	runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0)))
	if loaded == nil {
		loaded = describe()
	}
	for i := range commands.Table {
		commandAt(loaded.commands, i).only_if_free = boolInt(commands.Table[i].Name == commands.RedisCell)
	}
	return loaded
}

func describe() *C.shim_module {
	if len(commands.Table) > C.SHIM_MAX_COMMANDS {
		panic("cgo: more commands than trampolines")
	}
	m := newC[C.shim_module](1)
	m.version = C.CString(Version)
	for _, part := range strings.Split(Version, ".") {
		n := 0
		for _, digit := range part {
			n = n*10 + int(digit-'0')
		}
		m.version_number = m.version_number*100 + C.int32_t(n)
	}
	m.num_commands = C.int32_t(len(commands.Table))
	m.commands = newC[C.shim_command](len(commands.Table))
	for i := range commands.Table {
		describeCommand(&commands.Table[i], commandAt(m.commands, i))
	}
	texts := newC[*C.char](int(commands.NumErrors))
	for i := range commands.NumErrors {
		unsafe.Slice(texts, commands.NumErrors)[i] = C.CString(i.Text())
	}
	m.errors = texts
	return m
}

func describeCommand(command *commands.Command, c *C.shim_command) {
	c.name = C.CString(strings.ToLower(command.Name)) // as the server shows its own
	c.flags = C.CString(command.Flags)
	c.min_arity = C.int32_t(command.Least())
	c.max_arity = C.int32_t(command.MaxArity)
	c.writes = boolInt(command.Writes())
	c.info_name = C.CString(command.InfoName())
	c.wrong_arity = C.CString(command.WrongArity())
	c.plans = boolInt(command.Plan != nil)
	c.one_key = boolInt(command.OneKey)
	c.state = C.int32_t(command.State)

	version := newC[C.api_info_version](1)
	version.version = 1
	version.sizeof_historyentry = C.sizeof_api_history_entry
	version.sizeof_keyspec = C.sizeof_api_key_spec
	version.sizeof_arg = C.sizeof_api_arg
	c.info.version = version
	c.info.summary = C.CString(command.Summary)
	c.info.complexity = C.CString(command.Complexity)
	c.info.since = C.CString(command.Since)
	c.info.arity = C.int(command.Arity)
	c.info.tips = C.CString(strings.TrimSpace(commands.Tips + " " + command.FurtherTip))
	c.info.args = describeArgs(command.Args)
	if command.NoKey {
		c.no_key = 1
		return
	}

	// A zeroed element ends both lists, as the server wants.
	spec := newC[C.api_key_spec](2)
	spec.flags = C.KEYSPEC_RO | C.KEYSPEC_ACCESS
	if command.Writes() {
		spec.flags = C.KEYSPEC_RW | C.KEYSPEC_ACCESS | C.KEYSPEC_UPDATE
	}
	// The first word is a key: clients that look no further send the call to the right node.
	spec.begin_search_type = C.BEGIN_SEARCH_INDEX
	*(*C.int)(unsafe.Pointer(&spec.begin_search)) = 1 // index.pos: the union's first member
	spec.find_keys_type = C.FIND_KEYS_RANGE
	*(*[3]C.int)(unsafe.Pointer(&spec.find_keys)) = [3]C.int{0, 1, 0} // range: lastkey, keystep, limit
	c.info.key_specs = spec
}

// describeArgs returns the arguments and a zeroed one, which ends the list.
func describeArgs(args []commands.Arg) *C.api_arg {
	first := newC[C.api_arg](len(args) + 1)
	for i, a := range args {
		describeArg(a, &unsafe.Slice(first, len(args))[i])
	}
	return first
}

func describeArg(a commands.Arg, c *C.api_arg) {
	c.name = C.CString(strings.ToLower(a.Name))
	c.summary = C.CString(a.Summary)
	c._type = C.int(a.Type)
	if a.Type != commands.ArgKey {
		c.key_spec_index = -1
	}
	if a.Type == commands.ArgToken {
		a.Token = a.Name
	}
	if a.Token != "" {
		c.token = C.CString(a.Token)
	}
	if a.Sub != nil {
		c.subargs = describeArgs(a.Sub)
	}
	if a.Optional {
		c.flags |= C.ARG_OPTIONAL
	}
	if a.Multiple {
		c.flags |= C.ARG_MULTIPLE
	}
}

// newC returns n zeroed elements of C memory; the caller never frees them.
func newC[T any](n int) *T {
	var t T
	return (*T)(C.calloc(C.size_t(n), C.size_t(unsafe.Sizeof(t))))
}

func commandAt(first *C.shim_command, i int) *C.shim_command {
	return &unsafe.Slice(first, len(commands.Table))[i]
}

func boolInt(b bool) C.int32_t {
	if b {
		return 1
	}
	return 0
}
