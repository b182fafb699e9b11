package cgo

// #include "shim.h"
// #cgo noescape shim_zset_first
// #cgo nocallback shim_zset_first
// #cgo noescape shim_zset_last
// #cgo nocallback shim_zset_last
// #cgo noescape shim_zset_head
// #cgo nocallback shim_zset_head
// #cgo noescape shim_zset_find
// #cgo nocallback shim_zset_find
// #cgo noescape shim_zset_count
// #cgo nocallback shim_zset_count
// #cgo noescape shim_release_entries
// #cgo nocallback shim_release_entries
import "C"

import (
	"unsafe"

	"gothrottle/commands"
)

// The functions are declared noescape and nocallback above, which saves half of what a
// call from Go to C costs: they keep no pointer, and they only read from the server,
// which then does not come back into Go.

func init() { commands.TheHost = host{} }

// host answers what a handler asks of a sorted set. The call is C's record: see goCall.
type host struct{}

func record(c *commands.Call) *C.shim_call { return (*C.shim_call)(unsafe.Pointer(c)) }

func (host) First(c *commands.Call, above int64, n int) bool {
	return C.shim_zset_first(record(c), C.int64_t(above), C.int64_t(n)) != 0
}

func (host) Last(c *commands.Call, n int) bool {
	return C.shim_zset_last(record(c), C.int64_t(n)) != 0
}

func (host) Head(c *commands.Call, above, upTo int64, most int) {
	C.shim_zset_head(record(c), C.int64_t(above), C.int64_t(upTo), C.int64_t(most))
}

func (host) Find(c *commands.Call, prefix byte, id string) bool {
	// The id is a word of the call, so the pointer is to the server's memory.
	return C.shim_zset_find(record(c), C.int(prefix), (*C.char)(unsafe.Pointer(unsafe.StringData(id))), C.size_t(len(id))) != 0
}

func (host) Count(c *commands.Call, upTo int64) int64 {
	return int64(C.shim_zset_count(record(c), C.int64_t(upTo)))
}

func (host) Release(c *commands.Call, keep int) {
	C.shim_release_entries(record(c), C.int64_t(keep))
}
