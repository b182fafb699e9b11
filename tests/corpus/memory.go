package corpus

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

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
	m.Observe(func(command []string) { m.effects = append(m.effects, command) })
	return m
}

// Begin empties the host.
func (m *Memory) Begin(now int64) {
	m.now = now
	for _, key := range m.Keys() {
		m.Put(key, nil)
	}
	_ = m.SetPolicies("")
	m.CountDenials(1000)
}

// Clock sets the clock.
func (m *Memory) Clock(now int64) { m.now = now }

// Call runs a call and returns what it replicates.
func (m *Memory) Call(words []string) (reply any, effects [][]string) {
	m.effects = nil
	reply, err := m.Do(funnel.Micros(m.now), words...)
	if err != nil {
		reply = err
	}
	if !own(words[0]) {
		return reply, nil
	}
	return reply, m.effects
}

// Values returns what these keys hold, and how many keys there are.
func (m *Memory) Values(keys []string) (map[string]*memory.Value, int) {
	all := map[string]*memory.Value{}
	for _, key := range keys {
		all[key] = m.Get(key)
	}
	return all, len(m.Keys())
}

// Dump writes what all keys hold that have not expired.
func (m *Memory) Dump() string {
	values, _ := m.Values(m.Keys())
	return Dump(values, m.now)
}

// Dump writes what keys hold, without those that have expired at a time in µs.
func Dump(values map[string]*memory.Value, now int64) string {
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		v, set := values[key], ""
		if v == nil || v.Expired(funnel.Micros(now)) {
			continue
		}
		for _, m := range v.Set {
			set += fmt.Sprintf(" %s %q", strconv.FormatFloat(m.Score, 'f', -1, 64), m.Text)
		}
		lines = append(lines, Relative(fmt.Sprintf("%q: kind %d, text %q, fields %q, set %s, expires %d",
			key, v.Kind, v.Text, v.Fields, set, v.Expire), now))
	}
	return strings.Join(lines, "\n")
}
