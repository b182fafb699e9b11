package tests

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLoad_unloadIsRefusedAndTheLogSaysWhy(t *testing.T) {
	s := start(t, options{args: []string{"--enable-module-command", "yes"}})
	require.Error(t, s.Do(ctx, "MODULE", "UNLOAD", "gothrottle").Err())
	assert.Contains(t, s.log(), "cannot be unloaded")
	assert.Contains(t, s.log(), "estart the server")
	assert.Equal(t, []int64{0, 16, 15, -1, 2}, s.throttle("k", 15, 30, 60), "it goes on working")
	// Nor is it loaded twice.
	require.Error(t, s.Do(ctx, "MODULE", "LOAD", env.module).Err())
	assert.Equal(t, []int64{0, 16, 14, -1, 4}, s.throttle("k", 15, 30, 60))
}

// Loading while the server runs is the same as loading at its start.
func TestLoad_moduleLoad(t *testing.T) {
	s := start(t, options{bare: env.image == "", modArgs: nil, args: []string{"--enable-module-command", "yes"}})
	if env.image == "" {
		assert.Error(t, s.Do(ctx, "MODULE", "LOAD", env.module, "surprise", "1").Err())
		assert.Contains(t, s.log(), "'surprise'")
		assert.ErrorContains(t, s.Do(ctx, "GO.THROTTLE", "k", 15, 30, 60).Err(), "unknown command")
		require.NoError(t, s.Do(ctx, "MODULE", "LOAD", env.module, "cl-throttle", "no").Err())
	}
	assert.Equal(t, []int64{0, 16, 15, -1, 2}, s.throttle("k", 15, 30, 60))
}

func TestLoad_arguments(t *testing.T) {
	for _, c := range []struct {
		args    []string
		cell    bool   // whether CL.THROTTLE is there
		refused string // what the log says instead
	}{
		{nil, true, ""},
		{[]string{"cl-throttle", "yes"}, true, ""},
		{[]string{"cl-throttle", "no"}, false, ""},
		{[]string{"CL-THROTTLE", "NO"}, false, ""},
		{[]string{"cl-throttle", "maybe"}, false, "maybe"},
		{[]string{"cl-throttle"}, false, "cl-throttle"},
		{[]string{"surprise"}, false, "surprise"},
		{[]string{"cl-throttle", "yes", "surprise", "1"}, false, "surprise"},
	} {
		if c.refused != "" {
			log := refuse(t, options{modArgs: c.args})
			assert.Contains(t, log, "gothrottle not loaded", "%v", c.args)
			assert.Contains(t, log, c.refused, "%v", c.args)
			continue
		}
		s := start(t, options{modArgs: c.args})
		assert.Equal(t, []int64{0, 16, 15, -1, 2}, s.throttle("k", 15, 30, 60), "%v", c.args)
		reply := s.wire().do("COMMAND", "INFO", "CL.THROTTLE").([]any)
		assert.Equal(t, c.cell, reply[0] != nil, "%v", c.args)
	}
}

// The module replicates its effects under the names of the server's commands. Where
// one was renamed away it could not, so it does not load.
func TestLoad_refusedWhereAnEffectIsRenamedAway(t *testing.T) {
	for _, effect := range []string{"HSET", "HDEL", "ZADD", "ZREM", "SET", "DEL", "PEXPIREAT"} {
		for _, to := range []string{"", "hidden"} {
			log := refuse(t, options{args: []string{"--rename-command", effect, to}})
			assert.Contains(t, log, "gothrottle not loaded", effect)
			assert.Contains(t, log, effect)
		}
	}
	// Others may be renamed as one likes.
	s := start(t, options{args: []string{"--rename-command", "FLUSHALL", "", "--rename-command", "DEBUG", ""}})
	assert.Equal(t, int64(0), s.throttle("k", 15, 30, 60)[0])
}

// Any name can be taken, here by a command that was renamed to it. redis-cell's may
// be, ours not.
func TestLoad_namesThatAreTaken(t *testing.T) {
	cellTaken := []string{"--rename-command", "ECHO", "CL.THROTTLE"}
	s := start(t, options{args: cellTaken})
	assert.Contains(t, strings.ToLower(s.log()), "cl.throttle is taken")
	assert.Equal(t, []int64{0, 16, 15, -1, 2}, s.throttle("k", 15, 30, 60))
	assert.Equal(t, "hello", s.Do(ctx, "CL.THROTTLE", "hello").Val(), "it is still the other's")

	s = start(t, options{args: cellTaken, modArgs: []string{"cl-throttle", "no"}})
	assert.NotContains(t, s.log(), "is taken")

	log := refuse(t, options{args: cellTaken, modArgs: []string{"cl-throttle", "yes"}})
	assert.Regexp(t, "(?i)gothrottle not loaded: .*cl.throttle is taken", log)

	log = refuse(t, options{args: []string{"--rename-command", "ECHO", "GO.THROTTLE"}})
	assert.Regexp(t, "(?i)gothrottle not loaded: .*go.throttle is taken", log)
}

func TestLoad_shutsDownInGoodOrder(t *testing.T) {
	s := start(t, options{args: []string{"--appendonly", "yes"}})
	for range 1000 {
		s.throttle("k", 999, 1, 3600)
	}
	s.terminate()
	assert.True(t, s.exited())
	assert.Contains(t, s.log(), "bye bye")
	assert.NotContains(t, s.log(), "crashed")
}
