package cgo

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"runtime"
	"unsafe"

	"gothrottle/commands"
)

// goSetPolicies reads policies and puts them in force. It returns their text if they are right, else
// the text of the error. The caller frees the text. bytes is the server's, valid for this call.
//
//export goSetPolicies
func goSetPolicies(bytes *C.char, size C.size_t) (text *C.char, ok C.int) {
	// GoStringN would cut the size to an int of C.
	answer, right := setPolicies(unsafe.String((*byte)(unsafe.Pointer(bytes)), int(size)))
	return C.CString(answer), C.int(boolInt(right))
}

// setPolicies is goSetPolicies behind a barrier: no panic leaves Go, and after a panic the old
// policies stay.
func setPolicies(value string) (text string, ok bool) {
	defer func() {
		if reason := recover(); reason != nil {
			logCaught("the configuration policies", reason)
			text, ok = "internal error, see the server's log", false
		}
	}()
	p, err := parsePolicies(value)
	if err != nil {
		return err.Error(), false
	}
	showPolicies(p.Count())
	commands.UsePolicies(p)
	return p.Text(), true
}

// shown are the counters that C reads.
var shown runtime.Pinner

// showPolicies hands the counters to C. A call may still count in the old ones.
func showPolicies(counts []commands.PolicyCounts) {
	C.shim_show_policies(nil, 0)
	shown.Unpin()
	if len(counts) > 0 {
		shown.Pin(&counts[0])
		C.shim_show_policies((*C.shim_policy)(unsafe.Pointer(&counts[0])), C.int64_t(len(counts)))
	}
}

// parsePolicies is a variable so that a test can make it panic.
var parsePolicies = commands.ParsePolicies

// goCountDenials sets how many keys GO.TOP counts, 0 to commands.MaxTopKeys, and forgets what was
// counted. It needs no barrier: a table of such a size is made without a panic.
//
//export goCountDenials
func goCountDenials(keys C.int) { commands.CountDenials(int(keys)) }
