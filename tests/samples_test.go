package tests

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gothrottle/commands"
)

// A sample is a call of one command that is admitted. What holds for every command is
// tested with these.
type sample struct {
	call          string // KEY stands for the key
	first, second string // the replies to it on a new key, and to the same call again
	arity         int64
	flags         string // as COMMAND INFO tells them
	effect        string // the command that is replicated; "" if there is none
}

var samples = map[string]sample{
	"GO.THROTTLE": {"GO.THROTTLE KEY 15 30 108000", "[0 16 15 -1 3600]", "[0 16 14 -1 7200]",
		-5, "write denyoom fast", "HSET"},
	"CL.THROTTLE": {"CL.THROTTLE KEY 15 30 108000 1", "[0 16 15 -1 3600]", "[0 16 14 -1 7200]",
		-1, "write denyoom fast", "HSET"},
	"GO.WINDOW": {"GO.WINDOW KEY 16 3600", "[0 16 15 -1 3600]", "[0 16 14 -1 3600]",
		-4, "write denyoom fast", "ZADD"},
	"GO.QUOTA": {"GO.QUOTA KEY 16 3600 1 UPTO", "[0 16 15 -1 3600 1]", "[0 16 14 -1 3600 1]",
		-4, "write denyoom fast", "SET"},
	"GO.MTHROTTLE": {"GO.MTHROTTLE 2 KEY KEY 15 30 108000 1 1 1 3600 1",
		"[0 -1 -1 [0 16 15 -1 3600] [0 2 1 -1 3600]]", "[0 -1 -1 [0 16 14 -1 7200] [0 2 0 -1 7200]]",
		-7, "write denyoom movablekeys", "HSET"},
	"GO.LEASE": {"GO.LEASE KEY 16 3600 id", "[0 16 15 -1 3600]", "[0 16 15 -1 3600]",
		-5, "write denyoom fast", "ZADD"},
	"GO.RELEASE":     {"GO.RELEASE KEY id other", "0", "0", -3, "write fast", ""},
	"GO.THROTTLE_RO": {"GO.THROTTLE_RO KEY 15 30 108000", "[0 16 15 -1 3600]", "[0 16 15 -1 3600]", -5, "readonly fast", ""},
	"GO.WINDOW_RO":   {"GO.WINDOW_RO KEY 16 3600", "[0 16 15 -1 3600]", "[0 16 15 -1 3600]", -4, "readonly fast", ""},
	"GO.QUOTA_RO":    {"GO.QUOTA_RO KEY 16 3600 1 UPTO", "[0 16 15 -1 3600 1]", "[0 16 15 -1 3600 1]", -4, "readonly fast", ""},
}

// writes says whether the command may write, by its name.
func (c sample) writes() bool { return !strings.Contains(c.call, "_RO ") }

// on returns the words of the call for a key, of any bytes.
func (c sample) on(key string) []any { return on(c.call, key) }

func on(call, key string) []any {
	words := fields(call)
	for i := range words {
		if words[i] == "KEY" {
			words[i] = key
		}
	}
	return words
}

// flat returns a reply, or an error, as text.
func flat(v any, err error) string {
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(v)
}

// ask sends a line and returns the reply as text.
func (s *server) ask(call string) string {
	return flat(s.Do(ctx, fields(call)...).Result())
}

// must sends a line whose reply may be no error, and returns that as text.
func (s *server) must(call string) string {
	s.t.Helper()
	v, err := s.Do(ctx, fields(call)...).Result()
	require.NoError(s.t, err, call)
	return flat(v, nil)
}

func TestSamples_oneForEachCommand(t *testing.T) {
	for _, row := range commands.Table {
		assert.Contains(t, samples, row.Name)
	}
	assert.Len(t, samples, len(commands.Table))
}
