package tests

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"gothrottle/commands/memory"
	"gothrottle/tests/corpus"
)

// dataset returns what each key of a server holds, by database and name.
func (s *server) dataset() map[string]string {
	s.t.Helper()
	c, all := s.session(), map[string]string{}
	defer c.Close()
	for line := range strings.Lines(s.Info(ctx, "keyspace").Val()) {
		var db int
		if n, _ := fmt.Sscanf(line, "db%d:", &db); n == 0 {
			continue
		}
		c.do("SELECT", db)
		keys := c.Keys(ctx, "*").Val()
		for i, found := range c.EvalRO(ctx, corpus.ReadKeys, keys).Val().([]any) {
			key := keys[i]
			if v := corpus.Value(found.([]any)); v != nil {
				all[fmt.Sprint(db, " ", key)] = corpus.Dump(map[string]*memory.Value{key: v}, 0)
			}
		}
	}
	return all
}

// same compares two data sets and shows the first few keys that differ.
func same(t testing.TB, want, got map[string]string, where string) {
	t.Helper()
	all, differ := maps.Clone(want), 0
	maps.Copy(all, got)
	for key := range all {
		if want[key] != got[key] {
			if differ++; differ <= 5 {
				t.Errorf("%s: %s is %q, want %q", where, key, got[key], want[key])
			}
		}
	}
}
