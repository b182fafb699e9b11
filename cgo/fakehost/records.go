package fakehost

// #include <stdlib.h>
// #include "fake.h"
import "C"

import (
	"bufio"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"gothrottle/tests/corpus"
)

// Event is a keyspace event.
type Event struct {
	Class     int // the server's NOTIFY_ constant; 0 if only modules hear the event
	Name, Key string
}

func (e Event) String() string { return e.Name + " " + e.Key }

// Effects returns the replicated commands of the latest call, including the deletion of
// expired keys by the server. The caller must not change them.
func (h *Host) Effects() [][]string { return h.effects }

// Events returns the keyspace events of the latest call.
func (h *Host) Events() []Event { return h.events }

// Signals returns the keys whose watchers the latest call notified.
func (h *Host) Signals() []string { return h.lists[C.FAKE_SIGNALS] }

// ACLLog returns the entries that the module has added to the ACL log, each as "user key".
func (h *Host) ACLLog() []string { return h.lists[C.FAKE_ACL_LOG] }

// Log returns the lines of the server's log since ClearLog, each as "level: <module> text".
func (h *Host) Log() []string { return h.lists[C.FAKE_LOG] }

// ClearLog empties the log.
func (h *Host) ClearLog() { h.lists[C.FAKE_LOG] = nil }

// Faults returns the forbidden things that the module has done. Examples are a leak, freeing a string that the module
// does not own, and opening a key that is not among the words. Each fault is an error in the module.
func (h *Host) Faults() []string {
	if h == current {
		h.faults = slices.Collect(strings.Lines(textOf(&C.fake.faults)))
	}
	return h.faults
}

//export fakeNote
func fakeNote(list C.int, bytes *C.char, size C.size_t) {
	if !silent {
		current.lists[list] = append(current.lists[list], C.GoStringN(bytes, C.int(size)))
	}
}

//export fakeHas
func fakeHas(list C.int, bytes *C.char, size C.size_t) C.int {
	word := unsafe.String((*byte)(unsafe.Pointer(bytes)), size)
	if slices.ContainsFunc(current.lists[list], func(s string) bool { return strings.EqualFold(s, word) }) {
		return 1
	}
	return 0
}

//export fakeEffect
func fakeEffect(first C.int, bytes *C.char, size C.size_t) {
	if silent {
		return
	}
	if first != 0 {
		current.effects = append(current.effects, nil)
	}
	words := &current.effects[len(current.effects)-1]
	*words = append(*words, C.GoStringN(bytes, C.int(size)))
}

//export fakeHear
func fakeHear(class C.int, event, key *C.char, keyLen C.size_t) {
	if silent {
		return
	}
	h, e := current, Event{int(class), C.GoString(event), C.GoStringN(key, C.int(keyLen))}
	if class != C.FAKE_INNER {
		h.events = append(h.events, e)
	}
	if listener := h.listener; listener != nil {
		h.listener = nil
		listener(e)
		h.listener = listener
	}
}

// Alive counts what the module still has to free: strings, open keys, blocks of memory, replies of
// RedisModule_Call, users. A new host does not reset the counts.
func (h *Host) Alive() (all [C.FAKE_KINDS]int) {
	for i, n := range C.fake.alive {
		all[i] = int(n)
	}
	return all
}

// What Count counts.
const (
	Opened     = C.FAKE_OPENED      // keys that the module has opened
	ForWriting = C.FAKE_FOR_WRITING // those of them that it has opened for writing
	Looked     = C.FAKE_LOOKED      // calls of StringDMA, for which the server changes how it keeps a string
	Steps      = C.FAKE_STEPS       // what takes a server time: elements read, written, deleted or looked for, keys opened, commands
)

// Count returns how often the module has done something since the last ResetCounts.
func (h *Host) Count(what int) int { return int(C.fake.counts[what]) }

// ResetCounts sets all counts to zero.
func (h *Host) ResetCounts() { clear(C.fake.counts[:]) }

// Keys returns the keys that the server sees in a command's words, nil if it sees none. COMMAND
// GETKEYS replies these keys. ACL and cluster check them.
func (h *Host) Keys(words ...string) []string {
	w := newWords(words)
	defer C.fake_free_words(w)
	var positions C.fake_keys
	C.fake_keys_of(w, &positions)
	var keys []string
	for _, at := range positions.at[:positions.num] {
		keys = append(keys, words[at])
	}
	return keys
}

// Options returns the module options that OnLoad has set.
func (h *Host) Options() int { return int(C.fake.module.options) }

// Version returns the module's version number.
func (h *Host) Version() int { return int(C.fake.module.version) }

// Info returns the module's part of INFO.
func (h *Host) Info() string {
	var text C.fake_text
	defer C.fake_drop(&text)
	C.fake_info(&text)
	return textOf(&text)
}

// Command is a registered command.
type Command struct {
	Flags      string
	Categories string // "" until they are set
}

// Command returns the registered command of this name, nil if there is none.
func (h *Host) Command(name string) *Command {
	word := C.CString(name)
	defer C.free(unsafe.Pointer(word))
	c := C.fake_find_command(word)
	if c == nil {
		return nil
	}
	return &Command{C.GoString(&c.flags[0]), C.GoString(&c.categories[0])}
}

// Reply returns the reply to the latest Run, which was in RESP2: see corpus.ReadReply. It panics unless there is exactly one reply.
func (h *Host) Reply() any {
	wire := textOf(&C.fake.contexts[C.fake.depth].reply)
	in := bufio.NewReader(strings.NewReader(wire))
	reply, err := corpus.ReadReply(in)
	if _, rest := in.Peek(1); err != nil || rest == nil {
		panic("fakehost: not one reply: " + strconv.Quote(wire))
	}
	return reply
}

func textOf(t *C.fake_text) string {
	return string(unsafe.Slice((*byte)(unsafe.Pointer(t.bytes)), t.len))
}
