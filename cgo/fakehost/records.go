package fakehost

// #include <stdlib.h>
// #include "fake.h"
import "C"

import (
	"encoding/binary"
	"strconv"
	"strings"
	"unsafe"
)

// Event is a keyspace event.
type Event struct {
	Class     int // the server's NOTIFY_ constant; a listener is not told
	Name, Key string
}

func (e Event) String() string { return e.Name + " " + e.Key }

// EffectWords are the commands that were replicated, the server's own included.
func (h *Host) EffectWords() [][]string { return list(C.FAKE_EFFECTS) }

// Effects are the replicated commands, each in one line.
func (h *Host) Effects() []string { return lines(C.FAKE_EFFECTS) }

// Events are the keyspace events.
func (h *Host) Events() []Event {
	var events []Event
	for _, words := range list(C.FAKE_EVENTS) {
		class, _ := strconv.Atoi(words[0])
		events = append(events, Event{class, words[1], words[2]})
	}
	return events
}

// Signals are the keys whose watchers were told of a change.
func (h *Host) Signals() []string { return lines(C.FAKE_SIGNALS) }

// Log is the server's log, "level: <module> text" each, since ClearLog.
func (h *Host) Log() []string {
	var log []string
	for _, words := range list(C.FAKE_LOG) {
		log = append(log, words[0]+": "+words[1])
	}
	return log
}

// ClearLog empties the log.
func (h *Host) ClearLog() { C.fake.list[C.FAKE_LOG].len = 0 }

// Faults are the things done by the module that no module may do: a leak, a string that
// it does not own freed, a function used outside of its place. None should be there.
func (h *Host) Faults() []string { return lines(C.FAKE_FAULTS) }

// Alive counts what the module has made and not given back: strings, open keys, blocks
// of memory. It goes on counting from one host to the next.
func (h *Host) Alive() [3]int {
	return [3]int{int(C.fake.strings), int(C.fake.handles), int(C.fake.blocks)}
}

// Opened counts the keys that the module has ever opened, and those of them that it opened
// for writing.
func (h *Host) Opened() (all, toWrite int) {
	return int(C.fake.opened), int(C.fake.opened_to_write)
}

// Keys are the keys that the server sees in a command's words, nil if there are none that it
// can see: what COMMAND GETKEYS replies, and what users and cluster nodes are checked for.
func (h *Host) Keys(words ...string) []string {
	w := newWords(words)
	defer C.fake_free_words(w)
	var first C.int
	n := int(C.fake_keys_of(w, &first))
	if n < 0 {
		return nil
	}
	return words[first : int(first)+n]
}

// Options are the module options that OnLoad has set.
func (h *Host) Options() int { return int(C.fake.module.options) }

// Version is the module's version number.
func (h *Host) Version() int { return int(C.fake.module.version) }

// Info is what INFO says of the module, of all sections if section is empty.
func (h *Host) Info(section string) string {
	var wanted *C.char
	if section != "" {
		wanted = C.CString(section)
		defer C.free(unsafe.Pointer(wanted))
	}
	text := (*C.fake_text)(C.calloc(1, C.sizeof_fake_text))
	defer C.free(unsafe.Pointer(text))
	defer C.fake_drop(text)
	C.fake_info(wanted, text)
	return textOf(text)
}

// Command is a registered command.
type Command struct {
	Flags      string
	Arity      int
	Categories string // "" until set
	Info       string // what SetCommandInfo said, a line per item
}

// Command returns the registered command of this name, nil if there is none.
func (h *Host) Command(name string) *Command {
	word := C.CString(name)
	defer C.free(unsafe.Pointer(word))
	c := C.fake_find_command(word)
	if c == nil {
		return nil
	}
	command := &Command{Flags: C.GoString(c.flags), Arity: int(c.arity), Info: textOf(&c.info)}
	if c.categories != nil {
		command.Categories = C.GoString(c.categories)
	}
	return command
}

// Reply is a reply, as a client reads it.
type Reply struct {
	Err   string  // an error's text; nothing else is then set
	Int   int64   // an integer
	Array []Reply // an array; never nil for one
}

// Ints returns the elements of an array of integers, nil if it is anything else.
func (r Reply) Ints() []int64 {
	var ints []int64
	for _, element := range r.Array {
		if element.Err != "" || element.Array != nil {
			return nil
		}
		ints = append(ints, element.Int)
	}
	return ints
}

func (r Reply) String() string {
	switch {
	case r.Err != "":
		return r.Err
	case r.Array == nil:
		return strconv.FormatInt(r.Int, 10)
	}
	elements := make([]string, len(r.Array))
	for i, element := range r.Array {
		elements[i] = element.String()
	}
	return "[" + strings.Join(elements, " ") + "]"
}

// Reply is the reply to the latest Run. It panics if that is not exactly one.
func (h *Host) Reply() Reply {
	wire := textOf(&C.fake.contexts[C.fake.depth].reply)
	reply, rest := parseReply(wire)
	if rest != "" {
		panic("fakehost: more than one reply: " + strconv.Quote(wire))
	}
	return reply
}

// parseReply reads one reply off the wire and returns what follows it.
func parseReply(wire string) (Reply, string) {
	line, rest, complete := strings.Cut(wire, "\r\n")
	if !complete || line == "" {
		panic("fakehost: the reply is incomplete")
	}
	if line[0] == '-' {
		return Reply{Err: line[1:]}, rest
	}
	n, err := strconv.ParseInt(line[1:], 10, 64)
	if err != nil || line[0] != ':' && line[0] != '*' {
		panic("fakehost: no reply: " + strconv.Quote(line))
	}
	if line[0] == ':' {
		return Reply{Int: n}, rest
	}
	array := make([]Reply, n)
	for i := range array {
		array[i], rest = parseReply(rest)
	}
	return Reply{Array: array}, rest
}

// list reads one of C's lists: words after their lengths, fakeEnd after a record.
func list(which C.int) [][]string {
	const end = C.FAKE_END
	var records [][]string
	var words []string
	for rest := textOf(&C.fake.list[which]); rest != ""; {
		n := binary.NativeEndian.Uint32([]byte(rest[:4]))
		rest = rest[4:]
		if n == end {
			records, words = append(records, words), nil
			continue
		}
		words, rest = append(words, rest[:n]), rest[n:]
	}
	return records
}

func lines(which C.int) []string {
	var all []string
	for _, words := range list(which) {
		all = append(all, strings.Join(words, " "))
	}
	return all
}

func textOf(t *C.fake_text) string {
	return string(unsafe.Slice((*byte)(unsafe.Pointer(t.bytes)), t.len))
}
