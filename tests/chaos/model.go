package main

import (
	"maps"
	"slices"
	"strings"

	"gothrottle/commands"
	"gothrottle/commands/memory"
	"gothrottle/funnel"
)

// model is what a server must hold and reply: the commands run over maps, with the server's clocks.
type model struct {
	*memory.Server
	policies string
	now      funnel.Micros // the module's clock
	wall     funnel.Micros // the server's clock
}

// clear deletes all keys.
func (m *model) clear() {
	m.Server = memory.NewServer()
	m.CountDenials(1) // else GO.TOP is an error
	must(m.SetPolicies(m.policies))
}

// dataset returns what all keys must hold.
func (m *model) dataset() map[string]*memory.Value {
	all := m.all(map[string]*memory.Value{})
	maps.DeleteFunc(all, func(_ string, v *memory.Value) bool { return v.Expired(m.wall) })
	return all
}

// all adds to a dataset the keys of the model that it lacks, even expired ones.
func (m *model) all(held map[string]*memory.Value) map[string]*memory.Value {
	both := maps.Clone(held)
	for _, name := range m.Keys() {
		both[name] = m.Get(name)
	}
	return both
}

// ends reports whether a time is in the last millisecond of a key.
func (m *model) ends(wall funnel.Micros) bool {
	return slices.ContainsFunc(m.Keys(), func(name string) bool { return m.Get(name).Expire == int64(wall)/1000 })
}

// call runs a call and returns its reply.
func (m *model) call(words []string) string {
	m.SetLag(m.now - m.wall)
	return text(m.Do(m.now, words...))
}

// tooFew reports whether the server itself refuses a call because of its number of words.
func tooFew(w words) bool {
	n := commands.Find(w[0]).Arity
	return len(w) < -n || n > 0 && len(w) != n
}

// keysOf returns the keys of a call, and of some calls a word that is none: a holder of a lease may have the name KEY.
func keysOf(words []string) []string {
	c, keys := commands.Find(words[0]), map[string]bool{}
	for i := 1; i < len(words) && !c.NoKey; i++ {
		if i == 1 || c.Plan != nil && !c.OneKey && strings.EqualFold(words[i-1], "KEY") {
			keys[words[i]] = true
		}
	}
	return slices.Sorted(maps.Keys(keys))
}
