package fakehost

// #include "fake.h"
import "C"

import (
	"unsafe"

	"gothrottle/commands"
	"gothrottle/commands/memory"
)

// Put makes a key hold a value, even an empty one. The members of a sorted set must be in their order. Kinds have the server's
// numbers. The host keeps no content of a list, which is KindOther.
func (h *Host) Put(key string, v *memory.Value) {
	h.Delete(key)
	e := C.fake_add(chars(key), C.size_t(len(key)), C.int(v.Kind))
	h.Append(key, v.Text)
	for _, f := range v.Fields {
		C.fake_put_field(e, chars(f.Name), C.size_t(len(f.Name)), chars(f.Text), C.size_t(len(f.Text)))
	}
	for _, m := range v.Set {
		C.fake_push_member(e, C.double(m.Score), chars(m.Text), C.size_t(len(m.Text)))
	}
	h.Expire(key, v.Expire)
}

// Expire sets the expiry of a key that exists, in ms since the Unix epoch. With 0 it has none.
func (h *Host) Expire(key string, at int64) {
	if at == 0 {
		at = C.NO_EXPIRE
	}
	find(key).expire = C.longlong(at)
}

// Delete deletes a key, if it exists.
func (h *Host) Delete(key string) {
	if e := find(key); e != nil {
		C.fake_remove(e)
	}
}

// Append appends to a string, which stays where it is.
func (h *Host) Append(key, text string) {
	C.fake_append(&find(key).text, unsafe.Pointer(unsafe.StringData(text)), C.size_t(len(text)))
}

// Rename gives a key another name, which no key may have.
func (h *Host) Rename(key, name string) {
	e := find(key)
	e.name.len = 0
	C.fake_append(&e.name, unsafe.Pointer(unsafe.StringData(name)), C.size_t(len(name)))
}

func find(key string) *C.fake_entry { return C.fake_find(chars(key), C.size_t(len(key))) }

// Get returns what a key holds, even if it is empty or has expired; nil if there is no key.
func (h *Host) Get(key string) *memory.Value {
	e := find(key)
	if e == nil {
		return nil
	}
	v := &memory.Value{Kind: commands.Kind(e._type), Text: textOf(&e.text), Expire: max(int64(e.expire), 0)}
	for _, element := range unsafe.Slice(e.elements, e.num) {
		if name := textOf(&element.name); v.Kind == commands.KindHash {
			v.SetField(name, textOf(&element.value))
		} else {
			v.Set = append(v.Set, memory.Member{Score: float64(element.score), Text: name})
		}
	}
	return v
}

// Names returns the names of all keys.
func (h *Host) Names() []string {
	var names []string
	for e := C.fake.keys; e != nil; e = e.next {
		names = append(names, textOf(&e.name))
	}
	return names
}
