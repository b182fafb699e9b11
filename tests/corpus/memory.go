package corpus

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gothrottle/commands"
	"gothrottle/commands/memory"
	"gothrottle/funnel"
)

// Memory is a host over package memory.
type Memory struct {
	*memory.Server
	now     int64
	effects [][]string
}

// NewMemory returns a host without keys.
func NewMemory() *Memory {
	m := &Memory{Server: memory.NewServer()}
	m.Observe(func(key string, before, after *memory.Value, dropped []string) {
		m.effects = append(m.effects, Effects(key, before, after, dropped)...)
	})
	return m
}

// Begin empties the host.
func (m *Memory) Begin(now int64) {
	m.now = now
	for _, key := range m.Keys() {
		m.Put(key, nil)
	}
	_ = m.SetPolicies("")
	commands.CountDenials(1000)
}

// Clock sets the clock.
func (m *Memory) Clock(now int64) { m.now = now }

// Call runs a call and returns what it replicates.
func (m *Memory) Call(words []string) (reply any, effects [][]string) {
	m.effects = nil
	if !own(words[0]) {
		if reply, known := Plain(m.Server, words); known {
			return reply, nil
		}
	}
	reply, err := m.Do(funnel.Micros(m.now), words...)
	if err != nil {
		return err, m.effects
	}
	return reply, m.effects
}

// Values returns what these keys hold, and how many keys there are.
func (m *Memory) Values(keys []string) (map[string]*memory.Value, int) {
	all := map[string]*memory.Value{}
	for _, key := range keys {
		if v := m.Get(key); v != nil {
			all[key] = v
		}
	}
	return all, len(m.Keys())
}

// Dump writes what all keys hold that have not expired.
func (m *Memory) Dump() string {
	values, _ := m.Values(m.Keys())
	return Dump(values, m.now)
}

// Effects returns what a server with the module replicates for a change of a key: plain commands, in their order. See
// memory.Server.Observe.
func Effects(key string, before, after *memory.Value, dropped []string) (all [][]string) {
	if after == nil {
		return [][]string{{"DEL", key}}
	}
	if before == nil {
		before = &memory.Value{}
	}
	expires := after.Expire != before.Expire
	add := func(words ...string) {
		if len(words) > 2 {
			all = append(all, words)
		}
	}
	switch after.Kind {
	case commands.KindString:
		if expires {
			add("SET", key, after.Text, "PXAT", decimal(after.Expire))
		} else if after.Text != before.Text {
			add("SET", key, after.Text, "KEEPTTL")
		}
		return all
	case commands.KindHash:
		set, unset := fieldsOf(key, before, after)
		add(set...)
		add(unset...)
	case commands.KindZset:
		for _, m := range after.Set {
			if !slices.Contains(before.Set, m) {
				add("ZADD", key, strconv.FormatFloat(m.Score, 'f', -1, 64), m.Text)
			}
		}
		add(append([]string{"ZREM", key}, dropped...)...)
	}
	if expires && !after.Empty() {
		add("PEXPIREAT", key, decimal(after.Expire))
	}
	return all
}

func fieldsOf(key string, before, after *memory.Value) (set, unset []string) {
	set, unset = []string{"HSET", key}, []string{"HDEL", key}
	for cell := range commands.MaxCells {
		for field := range commands.MaxFields {
			name := memory.FieldName(cell, field)
			old, had := before.Field(name)
			text, has := after.Field(name)
			switch {
			case has && (!had || text != old):
				set = append(set, name, text)
			case had && !has:
				unset = append(unset, name)
			}
		}
	}
	return set, unset
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// Plain runs those of the server's own commands that the module replicates, and some that prepare a case. It reports
// whether it knows the command. As a replica, it does not look at the expiry of keys.
func Plain(s *memory.Server, words []string) (reply any, known bool) {
	defer func() {
		if recover() != nil {
			reply, known = fmt.Errorf("wrong words: %q", words), true
		}
	}()
	name, key, rest := words[0], words[1], words[2:]
	v := s.Get(key)
	kind := map[string]commands.Kind{"SET": commands.KindString, "HSET": commands.KindHash, "ZADD": commands.KindZset, "RPUSH": commands.KindOther}[name]
	if v == nil || kind != 0 && v.Kind != kind {
		v = &memory.Value{Kind: kind}
	}
	switch name {
	case "DEL":
		found := int64(0)
		for _, key := range words[1:] {
			if s.Delete(key) {
				found++
			}
		}
		return found, true
	case "EXISTS":
		return int64(len(s.Keys()) - len(slices.DeleteFunc(s.Keys(), func(k string) bool { return slices.Contains(words[1:], k) }))), true
	case "CONFIG":
		if err := s.SetPolicies(words[3]); err != nil {
			return err, true
		}
		return "OK", true
	case "PEXPIREAT":
		v.Expire = integer(rest[0])
	case "PERSIST":
		v.Expire = 0
	case "SET":
		v.Text = rest[0]
		if len(rest) == 1 || rest[1] != "KEEPTTL" {
			v.Expire = 0
		}
		if len(rest) == 3 && rest[1] == "PXAT" {
			v.Expire = integer(rest[2])
		}
	case "RPUSH":
	case "HSET":
		for i := 0; i < len(rest); i += 2 {
			v.SetField(rest[i], rest[i+1])
		}
	case "HDEL":
		for _, field := range rest {
			v.DropField(field)
		}
	case "ZADD":
		for i := 0; i < len(rest); i += 2 {
			score, err := strconv.ParseFloat(rest[i], 64)
			if err != nil {
				panic(err)
			}
			v.Add(memory.Member{Score: score, Text: rest[i+1]})
		}
	case "ZREM":
		for _, member := range rest {
			v.Drop(member)
		}
	default:
		return nil, false
	}
	if v.Kind != commands.KindAbsent {
		s.Put(key, v)
	}
	return "OK", true
}

func integer(word string) int64 {
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

// Dump writes what keys hold, without those that have expired at a time in µs.
func Dump(values map[string]*memory.Value, now int64) string {
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		v := values[key]
		if v == nil || v.Expired(funnel.Micros(now)) {
			continue
		}
		lines = append(lines, Relative(fmt.Sprintf("%q: kind %d, text %q, fields %q, set %s, expires %d",
			key, v.Kind, v.Text, v.Fields, members(v.Set), v.Expire), now))
	}
	return strings.Join(lines, "\n")
}

func members(set []memory.Member) string {
	b := ""
	for _, m := range set {
		b += fmt.Sprintf(" %s %q", strconv.FormatFloat(m.Score, 'f', -1, 64), m.Text)
	}
	return b
}
