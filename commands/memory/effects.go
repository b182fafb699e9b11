package memory

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gothrottle/commands"
	"gothrottle/funnel"
)

// Replicate makes the server tell f what a server with the module replicates: plain commands, in their order. f gets the
// words of one command, which it may keep. f must not call the server. If f is nil, nobody is told.
func (s *Server) Replicate(f func(words []string)) {
	mu.Lock()
	defer mu.Unlock()
	s.effect = f
}

// tell tells an effect.
func (s *Server) tell(words ...string) {
	if s.effect != nil {
		s.effect(words)
	}
}

func (s *Server) tellExpiry(name string, v *value) {
	if s.effect != nil {
		s.effect([]string{"PEXPIREAT", name, number(v.expire)})
	}
}

func (s *Server) tellAdded(name string, e commands.Entry) {
	if s.effect != nil {
		s.effect([]string{"ZADD", name, number(-int64(e.Time)), e.Member})
	}
}

// remove deletes a key, which need not be there.
func (s *Server) remove(key string) {
	if _, found := s.keys[key]; found {
		delete(s.keys, key)
		s.tell("DEL", key)
	}
}

// tellCells tells the fields that are set, and then those that go.
func (s *Server) tellCells(name string, cells []commands.Cell) {
	if s.effect == nil {
		return
	}
	set, unset := []string{"HSET", name}, []string{"HDEL", name}
	for i := range cells {
		for f := range commands.MaxFields {
			switch bit := uint32(1) << f; {
			case cells[i].Set&bit != 0:
				set = append(set, fieldName(i, f), number(cells[i].Value[f]))
			case cells[i].Unset&bit != 0:
				unset = append(unset, fieldName(i, f))
			}
		}
	}
	for _, words := range [][]string{set, unset} {
		if len(words) > 2 {
			s.effect(words)
		}
	}
}

func (s *Server) tellString(name string, v *value, expires bool) {
	switch {
	case s.effect == nil:
	case expires:
		s.effect([]string{"SET", name, v.text, "PXAT", number(v.expire)})
	default:
		s.effect([]string{"SET", name, v.text, "KEEPTTL"})
	}
}

// tellDropped tells the members that go.
func (s *Server) tellDropped(name string, entries []commands.Entry) {
	if s.effect == nil {
		return
	}
	words := []string{"ZREM", name}
	for i := range entries {
		if entries[i].Drop != 0 {
			words = append(words, entries[i].Member)
		}
	}
	if len(words) > 2 {
		s.effect(words)
	}
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// The name of the field of a lockout is this, plus the index of the cell. The other fields of a cell have four names in a row.
const (
	lockNames   = 128
	cellNames   = 4
	fieldOfLock = commands.MaxFields - 1
)

func fieldName(cell, field int) string {
	if field == fieldOfLock {
		return strconv.Itoa(lockNames + cell)
	}
	return strconv.Itoa(cellNames*cell + field)
}

// Apply does one plain command that Replicate told of, as a replica does it: an expired key stays until it is deleted.
func (s *Server) Apply(words ...string) error {
	mu.Lock()
	defer mu.Unlock()
	if len(words) < 2 {
		return fmt.Errorf("memory: the effect %q has too few words", words)
	}
	name, rest := words[1], words[2:]
	v := s.keys[name]
	var err error
	switch words[0] {
	case "DEL":
		delete(s.keys, name)
		return nil
	case "PEXPIREAT":
		if v != nil {
			err = v.expireAt(rest)
		}
		return err
	case "SET":
		s.keys[name], err = newString(v, rest)
		return err
	case "HSET", "HDEL":
		v = s.holder(name, commands.KindHash)
		err = v.setFields(words[0] == "HSET", rest)
	case "ZADD", "ZREM":
		v = s.holder(name, commands.KindZset)
		err = v.setMembers(words[0] == "ZADD", rest)
	default:
		return fmt.Errorf("memory: no effect is called %q", words[0])
	}
	if v.empty() {
		delete(s.keys, name)
	}
	return err
}

// holder returns what a key holds, which becomes a value of this kind.
func (s *Server) holder(name string, kind commands.Kind) *value {
	v := s.keys[name]
	if v == nil || v.kind != kind {
		v = &value{kind: kind}
		s.keys[name] = v
	}
	return v
}

func (v *value) expireAt(words []string) (err error) {
	if len(words) != 1 {
		return fmt.Errorf("memory: an expiry of %q", words)
	}
	v.expire, err = strconv.ParseInt(words[0], 10, 64)
	return err
}

// newString returns the string that a SET with these words leaves, where old was.
func newString(old *value, words []string) (*value, error) {
	v := &value{kind: commands.KindString}
	switch {
	case len(words) == 3 && words[1] == "PXAT":
		v.text = words[0]
		return v, v.expireAt(words[2:])
	case len(words) == 2 && words[1] == "KEEPTTL":
		if v.text = words[0]; old != nil {
			v.expire = old.expire
		}
		return v, nil
	}
	return v, fmt.Errorf("memory: SET with %q", words)
}

// setFields sets fields to the numbers that follow them, or removes fields.
func (v *value) setFields(set bool, words []string) error {
	for i := 0; i < len(words); i++ {
		name, err := strconv.Atoi(words[i])
		at, field := name/cellNames, name%cellNames
		if name >= lockNames {
			at, field = name-lockNames, fieldOfLock
		}
		if err != nil || at < 0 || at >= commands.MaxCells {
			return fmt.Errorf("memory: no field is called %q", words[i])
		}
		for len(v.cells) <= at {
			v.cells = append(v.cells, cell{})
		}
		c, bit := &v.cells[at], uint32(1)<<field
		if !set {
			c.found, c.value[field] = c.found&^bit, 0
			continue
		}
		if i++; i == len(words) {
			return fmt.Errorf("memory: the field %d has no value", name)
		}
		c.found |= bit
		if c.value[field], err = strconv.ParseInt(words[i], 10, 64); err != nil {
			return err
		}
	}
	v.trimCells()
	return nil
}

// setMembers adds one member with its score, or removes members.
func (v *value) setMembers(add bool, words []string) error {
	if !add {
		for _, member := range words {
			v.drop(member)
		}
		return nil
	}
	if len(words) != 2 {
		return fmt.Errorf("memory: ZADD with %q", words)
	}
	score, err := strconv.ParseInt(words[0], 10, 64)
	v.drop(words[1])
	v.add(commands.Entry{Time: funnel.Micros(-score), Member: words[1]})
	return err
}

// Expire drops a key that has expired, as a master does by itself now and then.
func (s *Server) Expire(key string, now funnel.Micros) {
	mu.Lock()
	defer mu.Unlock()
	s.alive(key, now)
}

// Clone returns a server with the same keys, as a full synchronisation makes one. Nobody is told of its effects.
func (s *Server) Clone() *Server {
	mu.Lock()
	defer mu.Unlock()
	c := &Server{keys: make(map[string]*value, len(s.keys)), policies: s.policies, sweepAt: s.sweepAt}
	for key, v := range s.keys {
		copied := *v
		copied.cells, copied.set = slices.Clone(v.cells), slices.Clone(v.set)
		c.keys[key] = &copied
	}
	return c
}

// State returns what a key holds, in one line, and its expiry in ms since the Unix epoch: 0 if it has none, -1 if there is
// no key.
func (s *Server) State(key string) (text string, expiresAt int64) {
	mu.Lock()
	defer mu.Unlock()
	v := s.keys[key]
	if v == nil {
		return "", -1
	}
	return fmt.Sprint(v.kind, v.cells, v.set, v.text), v.expire
}

// Expiry returns when a key expires: see State.
func (s *Server) Expiry(key string) int64 {
	mu.Lock()
	defer mu.Unlock()
	if v := s.keys[key]; v != nil {
		return v.expire
	}
	return -1
}

// SameAs reports whether a key holds the same on another server, with the same expiry.
func (s *Server) SameAs(other *Server, key string) bool {
	mu.Lock()
	defer mu.Unlock()
	v, w := s.keys[key], other.keys[key]
	if v == nil || w == nil {
		return v == w
	}
	return v.kind == w.kind && v.text == w.text && v.expire == w.expire && slices.Equal(v.cells, w.cells) && slices.Equal(v.set, w.set)
}

// Keys returns the names of all keys, also of expired ones, in their order.
func (s *Server) Keys() []string {
	mu.Lock()
	defer mu.Unlock()
	return slices.SortedFunc(maps.Keys(s.keys), strings.Compare)
}
