// Package cgo is the boundary between the server and package commands: all that says
// import "C" or unsafe. shim.h describes the flow of a call and who owns what.
package cgo

/*
#cgo CFLAGS: -std=gnu11 -O2 -Wall -Wextra
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

// clock is the module's clock. Only goCall uses it, on the server's main thread.
var clock funnel.Clock

func monotonic() int64 { return int64(C.shim_call_monotonic_us()) }

// goCall decides one call. It returns a commands.Error; the rest of the answer is in
// the record. The record is the server's memory, valid until goCall returns.
//
//export goCall
func goCall(record *C.shim_call, command C.int) C.int {
	// The layouts are the same: see the checks below.
	call := (*commands.Call)(unsafe.Pointer(record))
	call.Now = clock.Now(call.Now, monotonic)
	return C.int(guard(&commands.Table[command], call))
}

// guard runs a handler so that no panic leaves Go, which would end the server. A call
// whose handler panicked is an error and changes nothing.
func guard(command *commands.Command, call *commands.Call) (err commands.Error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = commands.ErrInternal
			logPanic(fmt.Sprintf("panic in %s: %v\n%s", command.Name, reason, debug.Stack()))
		}
	}()
	return command.Handler(call)
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

// These fail to compile (a negative constant is no uint) where a Go struct and its C
// twin differ in size or in the place of a field.
const (
	_ = uint(unsafe.Sizeof(commands.Call{}) - C.sizeof_shim_call)
	_ = uint(C.sizeof_shim_call - unsafe.Sizeof(commands.Call{}))
	_ = uint(unsafe.Sizeof(commands.Key{}) - C.sizeof_shim_key)
	_ = uint(C.sizeof_shim_key - unsafe.Sizeof(commands.Key{}))
	_ = uint(unsafe.Sizeof(commands.Cell{}) - C.sizeof_shim_cell)
	_ = uint(C.sizeof_shim_cell - unsafe.Sizeof(commands.Cell{}))
	_ = uint(unsafe.Sizeof(commands.Entry{}) - C.sizeof_shim_entry)
	_ = uint(C.sizeof_shim_entry - unsafe.Sizeof(commands.Entry{}))
	_ = uint(unsafe.Sizeof("") - C.sizeof_shim_text)
	_ = uint(C.sizeof_shim_text - unsafe.Sizeof(""))

	_ = -(unsafe.Offsetof(commands.Call{}.Keys) ^ unsafe.Offsetof(C.shim_call{}.keys))
	_ = -(unsafe.Offsetof(commands.Call{}.Cells) ^ unsafe.Offsetof(C.shim_call{}.cells))
	_ = -(unsafe.Offsetof(commands.Call{}.Entries) ^ unsafe.Offsetof(C.shim_call{}.entries))
	_ = -(unsafe.Offsetof(commands.Call{}.Now) ^ unsafe.Offsetof(C.shim_call{}.now_us))
	_ = -(unsafe.Offsetof(commands.Call{}.Asked) ^ unsafe.Offsetof(C.shim_call{}.asked))
	_ = -(unsafe.Offsetof(commands.Call{}.Limited) ^ unsafe.Offsetof(C.shim_call{}.limited))
	_ = -(unsafe.Offsetof(commands.Call{}.Shape) ^ unsafe.Offsetof(C.shim_call{}.shape))
	_ = -(unsafe.Offsetof(commands.Call{}.Replies) ^ unsafe.Offsetof(C.shim_call{}.replies))
	_ = -(unsafe.Offsetof(commands.Call{}.Reply) ^ unsafe.Offsetof(C.shim_call{}.reply))
	_ = -(unsafe.Offsetof(commands.Call{}.AddPrefix) ^ unsafe.Offsetof(C.shim_call{}.add_prefix))
	_ = -(unsafe.Offsetof(commands.Call{}.AddArg) ^ unsafe.Offsetof(C.shim_call{}.add_arg))
	_ = -(unsafe.Offsetof(commands.Call{}.AddTime) ^ unsafe.Offsetof(C.shim_call{}.add_time))
	_ = -(unsafe.Offsetof(commands.Call{}.SetLen) ^ unsafe.Offsetof(C.shim_call{}.set_len))
	_ = -(unsafe.Offsetof(commands.Call{}.Set) ^ unsafe.Offsetof(C.shim_call{}.set))
	_ = -(unsafe.Offsetof(commands.Key{}.Length) ^ unsafe.Offsetof(C.shim_key{}.length))
	_ = -(unsafe.Offsetof(commands.Key{}.Text) ^ unsafe.Offsetof(C.shim_key{}.text))
	_ = -(unsafe.Offsetof(commands.Key{}.Remove) ^ unsafe.Offsetof(C.shim_key{}.remove))
	_ = -(unsafe.Offsetof(commands.Key{}.ExpireFrom) ^ unsafe.Offsetof(C.shim_key{}.expire_from))
	_ = -(unsafe.Offsetof(commands.Key{}.ExpireTo) ^ unsafe.Offsetof(C.shim_key{}.expire_to))
	_ = -(unsafe.Offsetof(commands.Key{}.Window) ^ unsafe.Offsetof(C.shim_key{}.window))
	_ = -(unsafe.Offsetof(commands.Cell{}.Found) ^ unsafe.Offsetof(C.shim_cell{}.found))
	_ = -(unsafe.Offsetof(commands.Cell{}.Bad) ^ unsafe.Offsetof(C.shim_cell{}.bad))
	_ = -(unsafe.Offsetof(commands.Cell{}.Set) ^ unsafe.Offsetof(C.shim_cell{}.set))
	_ = -(unsafe.Offsetof(commands.Cell{}.Unset) ^ unsafe.Offsetof(C.shim_cell{}.unset))
	_ = -(unsafe.Offsetof(commands.Cell{}.Value) ^ unsafe.Offsetof(C.shim_cell{}.value))
	_ = -(unsafe.Offsetof(commands.Cell{}.Reply) ^ unsafe.Offsetof(C.shim_cell{}.reply))
	_ = -(unsafe.Offsetof(commands.Entry{}.Member) ^ unsafe.Offsetof(C.shim_entry{}.member))
	_ = -(unsafe.Offsetof(commands.Entry{}.Bad) ^ unsafe.Offsetof(C.shim_entry{}.bad))
	_ = -(unsafe.Offsetof(commands.Entry{}.Drop) ^ unsafe.Offsetof(C.shim_entry{}.drop))

	_ = -uint(commands.MaxFields ^ C.SHIM_FIELDS)
	_ = -uint(commands.AdoptedLen ^ C.SHIM_ADOPTED_LEN)
	_ = -uint(commands.ErrArity ^ C.SHIM_WRONG_ARITY)
	_ = -uint(commands.Nested ^ C.SHIM_NESTED)
	_ = -uint(commands.KindOther ^ C.SHIM_OTHER)
)
