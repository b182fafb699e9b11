package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gothrottle/commands"
	"gothrottle/commands/memory"
	"gothrottle/funnel"
	"gothrottle/tests/world"
)

// model is what the databases of a server must hold: the commands run over maps, with the server's clocks. The exact
// models also decide each call at keys whose history they know.
type model struct {
	dbs      []*database
	exact    world.Policies
	now      funnel.Micros // the module's clock
	wall     funnel.Micros // the server's clock
	policies string
}

// database is what one database must hold. Of the keys in doubt nothing is known.
type database struct {
	*memory.Server
	doubt map[string]bool
	exact world.Keys // by the exact models
}

// Put sets what a key holds. The exact models don't know what that means.
func (d *database) Put(name string, v *memory.Value) {
	if !reflect.DeepEqual(d.Get(name), v) {
		d.exact.Forget(name)
	}
	d.Server.Put(name, v)
}

const databases = 2

func newModel() *model {
	m := &model{}
	m.clear()
	return m
}

func (m *model) clear() {
	m.dbs = nil
	for range databases {
		m.dbs = append(m.dbs, m.newDatabase())
	}
}

func (m *model) newDatabase() *database {
	d := &database{memory.NewServer(), map[string]bool{}, world.Keys{}}
	d.CountDenials(1)             // else GO.TOP is an error
	_ = d.SetPolicies(m.policies) // an error of the schedule is the server's, too
	return d
}

func (m *model) setPolicies(text string) {
	m.policies, m.exact = text, world.NewPolicies(text)
	for _, d := range m.dbs {
		_ = d.SetPolicies(text)
	}
}

// dataset returns what all keys must hold, by database and name, but for those in doubt.
func (m *model) dataset() map[string]*memory.Value {
	all := map[string]*memory.Value{}
	for db, d := range m.dbs {
		for _, name := range d.Keys() {
			if !d.doubt[name] {
				all[fmt.Sprintf("%d %s", db, name)] = d.Get(name)
			}
		}
	}
	return all
}

// ends reports whether a time is in the last millisecond of a key.
func (m *model) ends(wall funnel.Micros) bool {
	for _, d := range m.dbs {
		for _, name := range d.Keys() {
			if d.Get(name).Expire == int64(wall)/1000 {
				return true
			}
		}
	}
	return false
}

// at returns the database and the name of a key of a dataset.
func (m *model) at(key string) (d *database, name string) { return m.dbs[key[0]-'0'], key[2:] }

// call runs a call and returns its reply, and that of the exact models: "" if they don't know it.
func (m *model) call(db int, words []string) (reply, exact string) {
	d := m.dbs[db]
	for _, key := range keysOf(words) {
		if d.gone(key, m.wall) && d.exact.Gone(key, m.now) {
			exact = fmt.Sprintf("another one: %s is gone, and was in use", key)
		}
	}
	d.SetLag(m.now - m.wall)
	v, err := d.Do(m.now, words...)
	if err != nil {
		v = err
	}
	reply = text(v)
	call, known := m.exact.Parse(words)
	switch known = known && d.exact.Knows(call); {
	case known && exact == "":
		v, _ := call.Reply(d.exact, m.now)
		exact = text(v)
	case !known && commands.Find(words[0]).Writes() && reply[0] != '-':
		d.exact.Forget(keysOf(words)...)
	}
	return reply, exact
}

func (d *database) gone(key string, wall funnel.Micros) bool {
	v := d.Get(key)
	return v == nil || v.Expired(wall)
}

// forget is for a clock that runs back: the exact models know nothing of what was before.
func (m *model) forget() {
	for _, d := range m.dbs {
		d.exact = world.Keys{}
		d.exact.Forget(d.Keys()...)
	}
}

// tooFew reports whether the server itself refuses a call because of its number of words.
func tooFew(w words) bool {
	n := commands.Find(w[0]).Arity
	return len(w) < -n || n > 0 && len(w) != n
}

// keysOf returns the keys of a call, and of some calls a word that is none: a holder of a lease may have the name KEY.
func keysOf(words []string) (keys []string) {
	c := commands.Find(words[0])
	for i := 1; i < len(words) && !c.NoKey; i++ {
		if (i == 1 || c.Plan != nil && !c.OneKey && strings.EqualFold(words[i-1], "KEY")) && !slices.Contains(keys, words[i]) {
			keys = append(keys, words[i])
		}
	}
	return keys
}

// allKeys returns the keys of calls; if there are none, a list of none.
func allKeys(calls []words) []string {
	keys := []string{}
	for _, w := range calls {
		keys = append(keys, keysOf(w)...)
	}
	return keys
}

// doubtful reports whether nothing is known of a key of a call.
func (m *model) doubtful(db int, words []string) bool {
	return len(m.dbs[db].doubt) > 0 && slices.ContainsFunc(keysOf(words), func(key string) bool { return m.dbs[db].doubt[key] })
}

// doubt says that a call may have been made or not, or in another way.
func (m *model) doubt(db int, words []string) {
	if commands.Find(words[0]).Writes() {
		m.dbs[db].exact.Forget(keysOf(words)...)
		for _, key := range keysOf(words) {
			m.dbs[db].doubt[key] = true
		}
	}
}
