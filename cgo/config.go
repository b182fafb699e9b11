package cgo

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"runtime"
	"unsafe"

	"gothrottle/commands"
	"gothrottle/funnel"
)

// goSetPolicies reads policies, which goApply then puts in force. It returns their text if they are right, else
// the text of the error. The caller frees the text. bytes is the server's, valid for this call.
//
//export goSetPolicies
func goSetPolicies(bytes *C.char, size C.size_t) (text *C.char, ok C.int) {
	// GoStringN would cut the size to an int of C.
	answer, right := setPolicies(unsafe.String((*byte)(unsafe.Pointer(bytes)), int(size)))
	return C.CString(answer), C.int(boolInt(right))
}

// setPolicies is goSetPolicies behind a barrier: no panic leaves Go, and after a panic the policies that were set before
// stay.
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
	wanted = p
	return p.Text(), true
}

// wanted are the policies that were set last.
var wanted *commands.Policies

// What is in force: policies by their text, and the table of GO.TOP by its size.
var (
	policies setting[string, countedPolicies]
	denials  setting[int, *funnel.Top]
)

type countedPolicies struct {
	*commands.Policies
	counts []commands.PolicyCounts
}

// setting is a value that is in force, and the one before it.
type setting[K comparable, V any] struct {
	key, formerKey K
	value, former  V
	changes        int
	at             instant // of the last change
}

// instant is when a setting changes: the time, and how many calls there have been.
type instant struct{ us, calls int64 }

// use puts a value in force and reports whether that is a change. Redis 8 applies one setting of a CONFIG SET before another
// setting fails, and then applies the old value: at the same instant. The old value comes back with all that it has counted.
func (s *setting[K, V]) use(key K, at instant, create func() V) bool {
	if s.changes > 0 && s.key == key {
		return false
	}
	value := s.former
	if s.changes < 2 || s.formerKey != key || s.at != at {
		value = create()
	}
	s.key, s.formerKey, s.value, s.former = key, s.key, value, s.value
	s.at = at
	s.changes++
	return true
}

// goApply puts in force the policies that were set last, and how many keys GO.TOP counts, 0 to commands.MaxTopKeys. What is
// in force already keeps its counters. It needs no barrier: a table of such a size is made without a panic.
//
//export goApply
func goApply(topKeys C.int, nowUs, calls C.int64_t) {
	apply(int(topKeys), instant{int64(nowUs), int64(calls)})
}

func apply(topKeys int, at instant) {
	if policies.use(wanted.Text(), at, func() countedPolicies { return countedPolicies{wanted, engine.CountCalls(wanted)} }) {
		showPolicies(policies.value.counts)
		engine.UsePolicies(policies.value.Policies)
	}
	if denials.use(topKeys, at, func() *funnel.Top { return commands.NewDenials(topKeys) }) {
		engine.CountDenials(denials.value)
	}
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
