package fakehost

// #include "fake.h"
import "C"

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
	"unsafe"
)

// NoExpiry is the expiry of a key that has none.
const NoExpiry = -1

// PutHash replaces key by a hash with these fields and values and no expiry.
func (h *Host) PutHash(key string, fieldsAndValues ...string) {
	put(key, C.TYPE_HASH, "")
	for i := 0; i < len(fieldsAndValues); i += 2 {
		h.PutField(key, fieldsAndValues[i], fieldsAndValues[i+1])
	}
}

// PutField sets a field of a hash.
func (h *Host) PutField(key, field, value string) {
	C.fake_put_field(find(key), chars(field), C.size_t(len(field)), chars(value), C.size_t(len(value)))
}

// PutString replaces key by a string without an expiry.
func (h *Host) PutString(key, text string) { put(key, C.TYPE_STRING, text) }

// Member is a member of a sorted set.
type Member struct {
	Score float64
	Text  string
}

// PutZset replaces key by a sorted set with these members and no expiry.
func (h *Host) PutZset(key string, members ...Member) {
	put(key, C.TYPE_ZSET, "")
	for _, m := range members {
		h.PutMember(key, m.Score, m.Text)
	}
}

// FillZset makes key a sorted set of n members, without an expiry. It takes time proportional to n.
// The members must be unique and sorted by score, then by text.
func (h *Host) FillZset(key string, n int, member func(i int) Member) {
	put(key, C.TYPE_ZSET, "")
	e := find(key)
	for i := range n {
		m := member(i)
		C.fake_push_member(e, C.double(m.Score), chars(m.Text), C.size_t(len(m.Text)))
	}
}

// PutMember adds a member to a sorted set, or changes its score.
func (h *Host) PutMember(key string, score float64, text string) {
	C.fake_put_member(find(key), C.double(score), chars(text), C.size_t(len(text)))
}

// PutOther replaces key by a "list" or a "set". The host keeps no content for these types.
func (h *Host) PutOther(key, kind string) {
	for i, name := range typeNames {
		if name == kind && (i == C.TYPE_LIST || i == C.TYPE_SET) {
			put(key, C.int(i), "")
			return
		}
	}
	panic("fakehost: no type " + kind)
}

func put(key string, kind C.int, text string) {
	C.fake_put(chars(key), C.size_t(len(key)), kind, chars(text), C.size_t(len(text)))
}

// Expire sets a key's expiry, in ms since the Unix epoch. NoExpiry removes the expiry.
func (h *Host) Expire(key string, at int64) { find(key).expire = C.longlong(at) }

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
func (h *Host) Rename(key, name string) { C.fake_rename(find(key), chars(name), C.size_t(len(name))) }

func find(key string) *C.fake_entry { return C.fake_find(chars(key), C.size_t(len(key))) }

// typeNames holds the name of each TYPE_ constant.
var typeNames = [...]string{C.TYPE_EMPTY: "none", C.TYPE_STRING: "string", C.TYPE_LIST: "list",
	C.TYPE_HASH: "hash", C.TYPE_SET: "set", C.TYPE_ZSET: "zset"}

// TypeOf returns the type of a key, "none" if the key does not exist. Neither TypeOf nor any
// other method that reads a key makes the key expire.
func (h *Host) TypeOf(key string) string {
	if e := find(key); e != nil {
		return typeNames[e._type]
	}
	return "none"
}

// ExpireOf returns a key's expiry, in ms since the Unix epoch. The result is NoExpiry if the key
// has no expiry or does not exist.
func (h *Host) ExpireOf(key string) int64 {
	if e := find(key); e != nil {
		return int64(e.expire)
	}
	return NoExpiry
}

// HashOf returns the fields of a hash, nil if the key is not a hash.
func (h *Host) HashOf(key string) map[string]string {
	e := find(key)
	if e == nil || e._type != C.TYPE_HASH {
		return nil
	}
	fields := map[string]string{}
	for _, f := range fieldsOf(e) {
		fields[textOf(&f.name)] = textOf(&f.value)
	}
	return fields
}

// ZsetOf returns the members of a sorted set in their order, nil if the key is not a sorted set.
func (h *Host) ZsetOf(key string) []Member {
	var members []Member
	if e := find(key); e != nil {
		for _, m := range unsafe.Slice(e.members, e.num_members) {
			members = append(members, Member{float64(m.score), textOf(&m.text)})
		}
	}
	return members
}

// StringOf returns the value of a string key, "" if the key is not a string.
func (h *Host) StringOf(key string) string {
	if e := find(key); e != nil {
		return textOf(&e.text)
	}
	return ""
}

// Names returns the names of all keys.
func (h *Host) Names() []string {
	var names []string
	for e := C.fake_walk(nil); e != nil; e = C.fake_walk(e) {
		names = append(names, textOf(&e.name))
	}
	return names
}

// Dump returns the whole keyspace, one line per key: name, type, expiry, content.
func (h *Host) Dump() []string {
	var lines []string
	for e := C.fake_walk(nil); e != nil; e = C.fake_walk(e) {
		var content []string
		for _, f := range fieldsOf(e) {
			content = append(content, textOf(&f.name)+"="+textOf(&f.value))
		}
		sort.Strings(content)
		for _, m := range unsafe.Slice(e.members, e.num_members) {
			content = append(content, strconv.FormatFloat(float64(m.score), 'f', -1, 64)+" "+textOf(&m.text))
		}
		lines = append(lines, fmt.Sprint(textOf(&e.name), " ", typeNames[e._type], " ", int64(e.expire), " ",
			textOf(&e.text), strings.Join(content, " ")))
	}
	sort.Strings(lines)
	return lines
}

func fieldsOf(e *C.fake_entry) []C.fake_field { return unsafe.Slice(e.fields, e.num_fields) }
