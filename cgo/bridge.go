// Package cgo is the boundary between the server and package commands: all code that says
// import "C" or unsafe. shim.h describes the flow of a call and who owns what.
//
// This package isn't an API: it may change with every version.
package cgo

/*
// -Os and not -O2: the code of a call competes with the server's for the processor's cache. I1 misses are 6 % fewer.
#cgo CFLAGS: -std=gnu11 -Os -Wall -Wextra -fvisibility=hidden
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"fmt"
	"runtime/debug"
	"strings"
	"unsafe"

	"gothrottle/commands"
	"gothrottle/funnel"
)

// engine decides the calls of the server.
var engine = commands.NewEngine(host{})

func monotonic() funnel.Micros { return funnel.Micros(C.shim_call_monotonic_us()) }

// goCall decides one call. It returns a commands.ErrorCode; the rest of the answer is in the record. The record is on
// the stack of its caller in call.c, so it is valid until goCall returns.
//
//export goCall
func goCall(record *C.shim_call, command C.int) C.int {
	// The layouts are the same: see the checks in layout.go.
	call := (*commands.Call)(unsafe.Pointer(record))
	clock := (*funnel.Clock)(unsafe.Pointer(&C.shim_clock))
	call.Now = clock.Now(call.Now, monotonic)
	return guard(record, command, (*commands.Engine).Run)
}

// goPlan names the keys of a call in the record. It returns a commands.ErrorCode. The server
// may ask for the keys of a call at any time.
//
//export goPlan
func goPlan(record *C.shim_call, command C.int) C.int {
	return guard(record, command, (*commands.Engine).Plan)
}

// writeError writes the text of an error that names a word or a clause into the record, with a zero at its end.
func writeError(record *C.shim_call, call *commands.Call, err commands.ErrorCode) {
	text := (*[commands.MaxErrorText]byte)(unsafe.Pointer(&record.error))
	b := call.AppendError(text[:0], err)
	text[len(b)] = 0
}

// guard runs a function of a command so that no panic leaves Go: a panic would end the server. A
// call that panicked is an error and changes nothing.
func guard(record *C.shim_call, command C.int, run func(*commands.Engine, *commands.Command, *commands.Call) commands.ErrorCode) (result C.int) {
	call, row := (*commands.Call)(unsafe.Pointer(record)), &commands.Table[command]
	returned := false
	defer func() {
		if returned {
			return
		}
		reason := recover()
		result, record.error[0] = C.int(commands.ErrInternal), 0
		logCaught(row.Name, reason)
	}()
	err := run(engine, row, call)
	if err != commands.NoError && call.Named() {
		writeError(record, call, err)
	}
	returned = true
	return C.int(err)
}

// lastPanic is the panic of a place that was logged last.
type lastPanic struct {
	logged funnel.Micros
	since  int // panics there that were not logged
}

// lastPanics has an entry for each place that has panicked: the barriers name few.
var lastPanics = map[string]lastPanic{}

// logCaught counts a panic that a barrier has caught. It logs one a second of each place: anyone who finds a call that
// panics must not fill the disk.
func logCaught(where string, reason any) {
	C.shim_panics++
	now, more := monotonic(), ""
	if last, found := lastPanics[where]; found {
		if now < last.logged+1_000_000 {
			last.since++
			lastPanics[where] = last
			return
		}
		if last.since > 0 {
			more = fmt.Sprintf("%d more panics in %s were not logged before this one\n", last.since, where)
		}
	}
	lastPanics[where] = lastPanic{logged: now}
	logPanic(fmt.Sprintf("panic in %s: %v\n%s%s", where, reason, more, debug.Stack()))
}

// logPanic writes to the server's log, line by line: the server cuts an entry at 1024
// bytes. A variable so that tests can listen.
var logPanic = func(text string) {
	level := C.CString("warning")
	for line := range strings.Lines(text) {
		entry := C.CString(strings.TrimSuffix(line, "\n"))
		C.shim_log(level, entry)
		C.free(unsafe.Pointer(entry))
	}
	C.free(unsafe.Pointer(level))
}
