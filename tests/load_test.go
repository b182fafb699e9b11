package tests

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLoad_unloadIsRefusedWithAReasonInTheLog(t *testing.T) {
	s := start(t, options{args: []string{"--enable-module-command", "yes"}})
	s.must("GO.THROTTLE_RO k 15 30 60")
	require.Error(t, s.Do(ctx, "MODULE", "UNLOAD", "gothrottle").Err())
	assert.Contains(t, s.log(), "cannot be unloaded")
	assert.Contains(t, s.log(), "estart the server")
	assert.Equal(t, []int64{0, 16, 15, -1, 2}, s.throttle("k", 15, 30, 60), "the module goes on working")
	// A second load is refused too.
	require.Error(t, s.Do(ctx, "MODULE", "LOAD", env.module).Err())
	assert.Equal(t, []int64{0, 16, 14, -1, 4}, s.throttle("k", 15, 30, 60))
}

// MODULE LOAD on a running server works as a load at the start of the server.
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
		cell    bool   // whether CL.THROTTLE is registered
		refused string // what the log says if the load is refused
	}{
		{nil, true, ""},
		{[]string{"cl-throttle", "yes"}, true, ""},
		{[]string{"cl-throttle", "no"}, false, ""},
		{[]string{"CL-THROTTLE", "NO"}, false, ""},
		{[]string{"cl-throttle", "maybe"}, false, "cl-throttle must be yes or no, not 'maybe'"},
		{[]string{"cl-throttle"}, false, "cl-throttle"},
		{[]string{"surprise"}, false, "unknown argument 'surprise'"},
		{[]string{"module-name", "gothrottle"}, true, ""},
		{[]string{"module-name", "redis-cell", "cl-throttle", "no"}, false, ""},
		{[]string{"Module-Name", "redis-cell"}, true, ""},
		{[]string{"module-name", "other"}, false, "module-name must be gothrottle or redis-cell, not 'other'"},
		{[]string{"module-name", "REDIS-CELL"}, false, "module-name must be gothrottle or redis-cell, not 'REDIS-CELL'"},
		{[]string{"module-name"}, false, "module-name must be gothrottle or redis-cell, not ''"},
		{[]string{"cl-throttle", "yes", "surprise", "1"}, false, "unknown argument 'surprise'"},
	} {
		if c.refused != "" {
			log := refuse(t, options{modArgs: c.args})
			assert.Contains(t, log, "gothrottle not loaded", "%v", c.args)
			assert.Contains(t, log, c.refused, "%v", c.args)
			continue
		}
		s := start(t, options{modArgs: c.args})
		assert.Equal(t, []int64{0, 16, 15, -1, 2}, s.throttle("k", 15, 30, 60), "%v", c.args)
		reply := s.session().do("COMMAND", "INFO", "CL.THROTTLE").([]any)
		assert.Equal(t, c.cell, reply[0] != nil, "%v", c.args)
	}
}

// The module replicates its effects as commands of the server. If one of these commands is
// renamed, the module refuses to load.
func TestLoad_refusedWhereAnEffectIsRenamedAway(t *testing.T) {
	for _, effect := range []string{"HSET", "HDEL", "ZADD", "ZREM", "SET", "DEL", "PEXPIREAT"} {
		for _, to := range []string{"", "hidden"} {
			log := refuse(t, options{args: []string{"--rename-command", effect, to}})
			assert.Contains(t, log, "gothrottle not loaded", effect)
			assert.Contains(t, log, effect)
		}
	}
	// Other commands may be renamed.
	s := start(t, options{args: []string{"--rename-command", "FLUSHALL", "", "--rename-command", "DEBUG", ""}})
	assert.Equal(t, int64(0), s.throttle("k", 15, 30, 60)[0])
}

// Another command may have the name of one of ours, here after rename-command. If CL.THROTTLE
// is taken, the module loads without that command, unless the load argument demands it. If one
// of the other names is taken, the module refuses to load.
func TestLoad_namesThatAreTaken(t *testing.T) {
	cellTaken := []string{"--rename-command", "ECHO", "CL.THROTTLE"}
	s := start(t, options{args: cellTaken})
	assert.Contains(t, strings.ToLower(s.log()), "cl.throttle is taken")
	assert.Equal(t, []int64{0, 16, 15, -1, 2}, s.throttle("k", 15, 30, 60))
	assert.Equal(t, "hello", s.Do(ctx, "CL.THROTTLE", "hello").Val(), "CL.THROTTLE is still ECHO")

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
