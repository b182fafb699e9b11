package tests

import (
	"strings"

	"gothrottle/commands"
	"gothrottle/tests/corpus"
)

// A sample is a row of the command table, with a call that is admitted. Tests of properties that every command has use
// the samples.
type sample struct {
	commands.Command
	Sample *corpus.Sample
}

var samples = func() map[string]sample {
	all := map[string]sample{}
	for _, row := range commands.Table {
		if !row.NoKey { // top_test.go has the tests of GO.TOP
			all[row.Name] = sample{row, corpus.Samples[row.Name]}
		}
	}
	return all
}()

// writes says whether the command is one that may write.
func (c sample) writes() bool { return c.Writes() }

// fast says whether the command has the flag fast.
func (c sample) fast() bool { return strings.HasSuffix(c.Flags, " fast") }

// flags returns the flags that COMMAND INFO must show.
func (c sample) flags() []string {
	all := append(strings.Fields(strings.ReplaceAll(c.Flags, "deny-oom", "denyoom")), "module")
	if c.asks() {
		all = append(all, "movablekeys")
	}
	return all
}

// asks says whether the server must ask the command for its keys.
func (c sample) asks() bool { return c.Plan != nil && !c.OneKey }

// on returns the words of the call with key in place of KEY. The key may hold any bytes.
func (c sample) on(key string) []any { return on(c.Sample.Call, key) }

// key returns the key of the call that on returns: a command may want a prefix.
func (c sample) key(key string) string { return c.on(key)[1].(string) }

// infoField returns the beginning of the names that the command's counters have in INFO.
func (c sample) infoField() string {
	name := strings.TrimPrefix(strings.ToLower(c.Name), "go.")
	return "gothrottle_" + strings.ReplaceAll(name, ".", "_")
}
