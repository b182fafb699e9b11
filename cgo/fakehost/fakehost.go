// Package fakehost runs the module without a server: a host written in C offers the
// server's module API, and the module's own entry points, C and Go behind it run in the
// test's process. Time stands still unless the test moves it.
//
// There is one host at a time, as the module's state is the process's. The module
// stays as it is when a host is closed: a new host is a server that starts and loads it.
package fakehost

/*
#cgo CFLAGS: -std=gnu11 -O2 -Wall -Wextra -Wno-unused-parameter
#include "fake.h"
*/
import "C"

import (
	"unsafe"

	_ "gothrottle/cgo" // RedisModule_OnLoad and all behind it
)

// Host is a server. None of its methods may be called concurrently.
type Host struct {
	listener func(Event)
}

// current is the host that C knows.
var current *Host

// New starts a server with an empty keyspace that can load the module.
func New() *Host {
	if current != nil {
		current.Close()
	}
	C.fake_start()
	current = &Host{}
	return current
}

// Close stops the server and frees all that it holds.
func (h *Host) Close() {
	if current == h {
		current = nil
		C.fake_stop()
	}
}

// Load loads the module with these arguments and tells whether it agreed.
func (h *Host) Load(args ...string) bool {
	words := newWords(args)
	defer C.fake_free_words(words)
	return C.fake_load(words) == C.API_OK
}

// Unload asks the module to go and tells whether it agreed.
func (h *Host) Unload() bool { return C.fake_unload() == C.API_OK }

// Call runs one command as if a client had sent it. Effects, Events and Signals are
// then those of this call, unless it was made by a listener inside another one.
func (h *Host) Call(words ...string) Reply {
	p := h.Prepare(words...)
	defer p.Free()
	p.Run()
	return h.Reply()
}

// Prepared is a command whose words are ready to be run many times.
type Prepared struct{ words *C.fake_words }

// Prepare makes a command ready. The caller frees it.
func (h *Host) Prepare(words ...string) Prepared { return Prepared{newWords(words)} }

// Run runs the command; Go allocates nothing for it.
func (p Prepared) Run() { C.fake_run(p.words) }

// Free gives the words' memory back.
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

// Now is the server's clock: µs since the Unix epoch.
func (h *Host) Now() int64 { return int64(C.fake.now_us) }

// SetNow sets the server's clock, as an administrator or NTP would; the monotonic
// clock stays.
func (h *Host) SetNow(micros int64) { C.fake.now_us = C.int64_t(micros) }

// AdvanceMono moves the monotonic clock alone.
func (h *Host) AdvanceMono(micros int64) { C.fake.mono_us += C.int64_t(micros) }

// Advance lets time pass, on both clocks.
func (h *Host) Advance(micros int64) {
	h.SetNow(h.Now() + micros)
	h.AdvanceMono(micros)
}

// Hide makes the server one that lacks a function of the module API.
func (h *Host) Hide(function string) { add(C.FAKE_HIDDEN, function) }

// Fail makes a function that describes commands return an error.
func (h *Host) Fail(function string) { add(C.FAKE_FAILING, function) }

// Take gives a command's name to another module.
func (h *Host) Take(command string) { add(C.FAKE_TAKEN, command) }

// RenameAway removes one of the server's own commands.
func (h *Host) RenameAway(command string) { add(C.FAKE_RENAMED, command) }

// AddCategory makes the server have an ACL category of this name.
func (h *Host) AddCategory(name string) { add(C.FAKE_CATEGORIES, name) }

// BeValkey offers every function by Valkey's name too.
func (h *Host) BeValkey() { C.fake.valkey = 1 }

// LeaveArity makes the server pass on calls with too few or too many words.
func (h *Host) LeaveArity() { C.fake.skip_arity = 1 }

// Restore makes the server have its whole API, its commands and their names again.
func (h *Host) Restore() {
	for _, list := range []int{C.FAKE_HIDDEN, C.FAKE_FAILING, C.FAKE_TAKEN, C.FAKE_RENAMED} {
		C.fake.list[list].len = 0
	}
}

func add(which C.int, word string) {
	list := &C.fake.list[which] // in a call's argument cgo would take a copy
	C.fake_word(list, chars(word), C.size_t(len(word)))
	C.fake_end(list)
}

// Listen has f hear every keyspace event; what f does itself it does not hear.
func (h *Host) Listen(f func(Event)) {
	h.listener = f
	C.fake.listens = 1
}

//export fakeHear
func fakeHear(event, key *C.char, keyLen C.size_t) {
	current.listener(Event{Name: C.GoString(event), Key: C.GoStringN(key, C.int(keyLen))})
}

// Function is a function of the API that the module knows of.
type Function struct {
	Name     string
	Since    string // the release of Redis that brought it
	Required bool
}

// Functions lists the API.
func Functions() []Function {
	var all []Function
	for i := C.int(0); ; i++ {
		var since *C.char
		var required C.int
		name := C.fake_function(i, &since, &required)
		if name == nil {
			return all
		}
		all = append(all, Function{C.GoString(name), C.GoString(since), required != 0})
	}
}
