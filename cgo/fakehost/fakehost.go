// Package fakehost runs the module without a server. A host written in C implements the
// server's module API. The module's C and Go code runs unchanged in the test's process. The
// host's clocks stand still unless the test moves them.
//
// A process has one module state, so there is one host at a time. Closing a host does not reset
// the module. A new host is a server that has not loaded the module yet.
package fakehost

/*
#cgo CFLAGS: -std=gnu11 -O2 -Wall -Wextra -Wno-unused-parameter
#include <stdlib.h>
#include "fake.h"
*/
import "C"

import (
	"unsafe"

	_ "gothrottle/cgo" // defines RedisModule_OnLoad
)

// Host is a server. None of its methods may be called concurrently.
type Host struct {
	listener func(Event) // nil while it runs
	settings map[string]string
	lists    [C.FAKE_LISTS][]string
	effects  [][]string
	events   []Event
	faults   []string // of a closed host
}

// current is the host whose state C holds, nil if there is none. While it is silent, it keeps no records.
var (
	current *Host
	silent  bool
)

// New starts a server with an empty keyspace that can load the module.
func New() *Host {
	if current != nil {
		current.Close()
	}
	C.fake_start()
	current = &Host{settings: map[string]string{}}
	return current
}

// Close stops the server and frees all that it holds.
func (h *Host) Close() {
	if current == h {
		h.Faults()
		C.fake_stop()
		current = nil
	}
}

// Load loads the module with these arguments and reports whether it agreed.
func (h *Host) Load(args ...string) bool {
	words := newWords(args)
	defer C.fake_free_words(words)
	return C.fake_load(words) == C.API_OK
}

// Unload asks the module to go and reports whether it agreed. Without a module it returns false.
func (h *Host) Unload() bool { return C.fake_unload() == C.API_OK }

// Call runs one command as if a client had sent it. Effects, Events and Signals then return those
// of this call. If a listener makes the call, they are added to those of the outer call.
func (h *Host) Call(words ...string) any {
	p := h.Prepare(words...)
	defer p.Free()
	if C.fake.depth == 0 {
		h.effects, h.events, h.lists[C.FAKE_SIGNALS], h.lists[C.FAKE_CHECKS] = nil, nil, nil, nil
	}
	C.fake_run(p.words)
	return h.Reply()
}

// Prepared is a command that can run many times. Its words are converted only once.
type Prepared struct{ words *C.fake_words }

// Prepare converts the words of a command. The caller must call Free.
func (h *Host) Prepare(words ...string) Prepared { return Prepared{newWords(words)} }

// Run runs the command. The host keeps no records of it, and allocates no memory of Go.
func (p Prepared) Run() {
	silent = true
	C.fake_run(p.words)
	silent = false
}

// Free frees the memory of the words.
func (p Prepared) Free() { C.fake_free_words(p.words) }

func newWords(words []string) *C.fake_words {
	w := C.fake_new_words(C.int(len(words)))
	for i, word := range words {
		C.fake_set_word(w, C.int(i), chars(word), C.size_t(len(word)))
	}
	return w
}

// chars lends a string's bytes to a C function that keeps no pointer to them.
func chars(s string) *C.char { return (*C.char)(unsafe.Pointer(unsafe.StringData(s))) }

// Now returns the time of the server's wall clock, in µs since the Unix epoch.
func (h *Host) Now() int64 { return int64(C.fake.now_us) }

// SetNow sets the server's wall clock, as an administrator or NTP does. The monotonic clock does not change.
func (h *Host) SetNow(micros int64) { C.fake.now_us = C.int64_t(micros) }

// Restart sets the server's wall clock as a new process has it: the module's clock forgets the latest time.
func (h *Host) Restart(micros int64) {
	C.shim_clock = C.shim_clock_state{}
	h.SetNow(micros)
}

// Advance moves both clocks.
func (h *Host) Advance(micros int64) {
	h.SetNow(h.Now() + micros)
	C.fake.mono_us += C.int64_t(micros)
}

// What Add adds to.
const (
	Hidden     = C.FAKE_HIDDEN     // API functions that the server lacks
	Failing    = C.FAKE_FAILING    // API functions that return an error: some that register commands and configurations
	Taken      = C.FAKE_TAKEN      // commands of another module
	Renamed    = C.FAKE_RENAMED    // commands of the server that it has lost by rename-command
	Busy       = C.FAKE_BUSY       // names of other modules
	Categories = C.FAKE_CATEGORIES // ACL categories beyond the server's own
	Forbidden  = C.FAKE_FORBIDDEN  // keys that the user may not use; the host does not check the keys that the server sees
	Elsewhere  = C.FAKE_ELSEWHERE  // keys that another node of the cluster holds
)

// Add adds names to a list.
func (h *Host) Add(what int, names ...string) {
	h.lists[what] = append(h.lists[what], names...)
}

// What Set sets.
const (
	Version   = C.FAKE_VERSION    // of Redis: 0x00MMmmpp; a new host is 8.6.3
	Valkey    = C.FAKE_VALKEY     // 1: each API function has a second name, which begins with ValkeyModule_
	Cluster   = C.FAKE_CLUSTER    // 1: the server is a node of a cluster
	IOThreads = C.FAKE_IO_THREADS // 0: the server has no such setting; 1 at the start
	Database  = C.FAKE_DATABASE   // the number that the module gets; the keys stay the same
	NoUser    = C.FAKE_NO_USER    // 1: calls are the server's own
	Forgotten = C.FAKE_FORGOTTEN  // 1: the user whose calls still run was deleted
)

// Set changes the server.
func (h *Host) Set(what, n int) { C.fake.is[what] = C.int(n) }

// How a call fails that the module makes of the server.
const (
	NoReply    = C.FAKE_NO_REPLY
	ErrorReply = C.FAKE_ERROR
	OtherType  = C.FAKE_OTHER_TYPE // a reply of another type than the command has
	Integers   = C.FAKE_INTEGERS   // an array of two integers
)

// CallsFail makes RedisModule_Call fail for these commands. With kind 0 no call fails any more.
func (h *Host) CallsFail(kind int, commands ...string) {
	C.fake.calls_fail, h.lists[C.FAKE_REFUSED] = C.int(kind), commands
}

// BeChild makes the server a forked child.
func (h *Host) BeChild() { C.shim_forked = 1 }

// Configure gives the configuration of this full name a value, as a configuration file does before
// the load. The last value counts.
func (h *Host) Configure(name, value string) {
	h.settings[name] = value
}

//export fakeSetting
func fakeSetting(name *C.char) *C.char {
	if value, found := current.settings[C.GoString(name)]; found {
		return C.CString(value)
	}
	return nil
}

// ConfigSet sets a configuration by its full name and returns the error's text, "" if there is none.
func (h *Host) ConfigSet(name, value string) string { return h.configSet(name, value, true) }

// ConfigFails sets a configuration as a CONFIG SET does that also has a wrong setting: the value that it had before comes back,
// and Redis 8 may have applied both.
func (h *Host) ConfigFails(name, value, before string) (text string) {
	for _, apply := range []bool{false, true} {
		text += h.configSet(name, value, apply) + h.configSet(name, before, apply)
	}
	return text
}

func (h *Host) configSet(name, value string, apply bool) string {
	full := C.CString(name)
	defer C.free(unsafe.Pointer(full))
	var text C.fake_text
	defer C.fake_drop(&text)
	switch {
	case C.fake_config_set(full, chars(value), C.size_t(len(value)), &text) != C.API_OK:
		return textOf(&text)
	case apply && C.fake_config_apply(full) != C.API_OK:
		return "the setting was not applied"
	}
	return ""
}

// Listen makes the host call f for each keyspace event, except for those that f itself causes. f also hears the events that
// only modules hear, which the server sends inside of an API function: new, keymiss, and unlink for a key that is about to be
// removed. Their class is 0, and so is that of filter, which a command filter of a module hears before a call of the server that
// our module makes.
func (h *Host) Listen(f func(Event)) { h.listener = f }

// Function is a function of the API that the module knows of.
type Function struct {
	Name     string
	Since    string // the release that brought it
	Required bool
}

// Functions returns all functions of the API, in the order of api.h.
func Functions() (all []Function) {
	for i := C.int(0); ; i++ {
		f := C.fake_function_at(i)
		if f == nil {
			return all
		}
		all = append(all, Function{C.GoString(f.name), C.GoString(f.release), f.needed == C.REQUIRED})
	}
}
