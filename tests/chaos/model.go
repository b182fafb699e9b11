package main

import (
	"fmt"
	"slices"
	"strings"

	"gothrottle/commands"
	"gothrottle/commands/memory"
	"gothrottle/funnel"
)

// model is what the databases of a server must hold: the commands run over maps, with the server's clocks.
type model struct {
	dbs      []*database
	now      funnel.Micros // the module's clock
	wall     funnel.Micros // the server's clock
	policies string
}

// database is what one database must hold. Of the keys in doubt nothing is known.
type database struct {
	*memory.Server
	doubt map[string]bool
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
	d := &database{memory.NewServer(), map[string]bool{}}
	d.CountDenials(1)             // else GO.TOP is an error
	_ = d.SetPolicies(m.policies) // an error of the schedule is the server's, too
	return d
}

func (m *model) setPolicies(text string) {
	m.policies = text
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

// at returns the database and the name of a key of a dataset.
func (m *model) at(key string) (d *database, name string) { return m.dbs[key[0]-'0'], key[2:] }

// call runs a call and returns its reply.
func (m *model) call(db int, words []string) string {
	d := m.dbs[db]
	d.SetLag(m.now - m.wall)
	reply, err := d.Do(m.now, words...)
	if err != nil {
		return "-" + err.Error()
	}
	return text(reply)
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
		for _, key := range keysOf(words) {
			m.dbs[db].doubt[key] = true
		}
	}
}
