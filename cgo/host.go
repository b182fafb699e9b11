package cgo

// #include "shim.h"
// #cgo noescape shim_zset_newest
// #cgo nocallback shim_zset_newest
// #cgo noescape shim_zset_first
// #cgo nocallback shim_zset_first
// #cgo noescape shim_zset_oldest
// #cgo nocallback shim_zset_oldest
// #cgo noescape shim_zset_rank
// #cgo noescape shim_zset_find
// #cgo nocallback shim_zset_find
// #cgo noescape shim_zset_count_after
// #cgo noescape shim_zset_put
// #cgo nocallback shim_zset_put
// #cgo noescape shim_release_entries
// #cgo nocallback shim_release_entries
// #cgo noescape shim_put_item
// #cgo nocallback shim_put_item
import "C"

import (
	"unsafe"

	"gothrottle/commands"
	"gothrottle/funnel"
)

// The functions are declared noescape and nocallback above, which saves half of the cost of a call from Go to C. They
// keep no pointer, and they only read from the server, which then does not enter Go again. Two of them run commands of
// the server: a command filter of another module may then make a call of ours, so these are not nocallback.

// host answers what a handler asks of the server. The call is C's record: see goCall.
type host struct{}

func record(c *commands.Call) *C.shim_call { return (*C.shim_call)(unsafe.Pointer(c)) }

func (host) Newest(c *commands.Call, key, most int) {
	C.shim_zset_newest(record(c), C.int64_t(key), C.int64_t(most))
}

func (host) First(c *commands.Call, key int, after funnel.Micros) bool {
	return C.shim_zset_first(record(c), C.int64_t(key), C.int64_t(after)) != 0
}

func (host) Oldest(c *commands.Call, key int, after, upTo funnel.Micros, most int) {
	C.shim_zset_oldest(record(c), C.int64_t(key), C.int64_t(after), C.int64_t(upTo), C.int64_t(most))
}

func (host) Put(c *commands.Call, key int, prefix byte, id string, time funnel.Micros) {
	C.shim_zset_put(record(c), C.int64_t(key), C.int(prefix),
		(*C.char)(unsafe.Pointer(unsafe.StringData(id))), C.size_t(len(id)), C.int64_t(time))
}

func (host) Rank(c *commands.Call, key int, rank int64) (bool, commands.ErrorCode) {
	found := C.shim_zset_rank(record(c), C.int64_t(key), C.int64_t(rank))
	return found > 0, changed(found == C.SHIM_CHANGED)
}

func (host) Find(c *commands.Call, key int, prefix byte, id string) bool {
	// The id is a word of the call, so the pointer is to the server's memory.
	return C.shim_zset_find(record(c), C.int64_t(key), C.int(prefix),
		(*C.char)(unsafe.Pointer(unsafe.StringData(id))), C.size_t(len(id))) != 0
}

func (host) CountAfter(c *commands.Call, key int, after funnel.Micros) (int64, commands.ErrorCode) {
	n := int64(C.shim_zset_count_after(record(c), C.int64_t(key), C.int64_t(after)))
	return n, changed(n == C.SHIM_CHANGED)
}

// changed returns the error of a call whose keys another module has changed.
func changed(yes bool) commands.ErrorCode {
	if yes {
		return commands.ErrInternal // the record has the text
	}
	return commands.NoError
}

func (host) Release(c *commands.Call, key, keep int) {
	C.shim_release_entries(record(c), C.int64_t(key), C.int64_t(keep))
}

func (host) Reply(c *commands.Call, kind commands.ItemKind, n int64, text string) {
	// C copies the text before it returns.
	C.shim_put_item(record(c), C.int32_t(kind), C.int64_t(n),
		(*C.char)(unsafe.Pointer(unsafe.StringData(text))), C.size_t(len(text)))
}
