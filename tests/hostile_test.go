package tests

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	servers "gothrottle/tests/server"
)

// startHostile starts a server with a module that changes keys in keyspace events: see servers.Hostile.
func startHostile(t *testing.T) *server {
	t.Helper()
	localOnly(t)
	module, err := servers.Hostile(t.TempDir())
	require.NoError(t, err)
	s := start(t, options{Args: []string{"--enable-debug-command", "yes", "--loadmodule", module}})
	require.NoError(t, s.Do(ctx, "DEBUG", "SET-ACTIVE-EXPIRE", 0).Err())
	return s
}

// hostileActions are the actions of that module.
var hostileActions = strings.Fields("set hset zadd append del pexpire persist rename replace move delete expire " +
	"throttle window quota lease all flushall swapdb")

// hostileCall is a call of up to three keys, and for each key the call that makes it.
type hostileCall struct {
	line  string
	makes []string
}

// key returns the name of a key of the call.
func (c hostileCall) key(i int) string { return strings.Fields(c.makes[i])[1] }

// hostileCalls returns a call of each command, and calls with several keys.
func hostileCalls() (all []hostileCall) {
	for name, c := range samples {
		makes := strings.Replace(c.Sample.Call, "_RO", "", 1)
		switch name {
		case "GO.INFO":
			makes = samples["GO.THROTTLE"].Sample.Call
		case "GO.RELEASE":
			makes = samples["GO.LEASE"].Sample.Call
		}
		all = append(all, hostileCall{strings.ReplaceAll(c.Sample.Call, "KEY", "a"), []string{strings.ReplaceAll(makes, "KEY", "a")}})
	}
	const t, w, q, l = "GO.THROTTLE %s 3 1 3600", "GO.WINDOW %s 3 3600", "GO.QUOTA %s 3 3600", "GO.LEASE %s 3 3600 x"
	makes := func(forms ...string) (lines []string) {
		for i, form := range forms {
			lines = append(lines, fmt.Sprintf(form, "abc"[i:i+1]))
		}
		return lines
	}
	return append(all,
		hostileCall{"GO.THROTTLE a 3 1 3600 -1", makes(t)},
		hostileCall{"GO.WINDOW a 3 3600 -1", makes(w)},
		hostileCall{"GO.THROTTLE a 3 1 3600", []string{"SET a 4611686018427387904"}}, // as redis-cell
		hostileCall{"GO.ALL a THROTTLE 3 1 3600 KEY b WINDOW 3 3600", makes(t, w)},
		hostileCall{"GO.ALL a QUOTA 3 3600 KEY b LEASE 3 3600 y KEY c THROTTLE 3 1 3600", makes(q, l, t)},
		hostileCall{"GO.ALL a WINDOW 3 3600 -1 KEY b THROTTLE 3 1 3600 KEY c QUOTA 3 3600 -1", makes(w, t, q)},
		hostileCall{"GO.ALL a THROTTLE 0 1 3600 KEY b QUOTA 3 3600", makes(t, q)}, // limited if a is there
		hostileCall{"GO.ALL_RO a QUOTA 3 3600 KEY b WINDOW 3 3600 KEY c THROTTLE 3 1 3600", makes(q, w, t)},
		hostileCall{"GO.ALL_RO a LEASE 3 3600 y KEY b THROTTLE 3 1 3600", makes(l, t)},
	)
}

// hostileCase is a call, the state of each of its keys (absent, there, or expired), and what the other
// module does. Without an action it only listens.
type hostileCase struct {
	call                  hostileCall
	states                string // 0, 1, 2
	event, action, target string
	times                 int // do the action so often before the call, not in an event
}

// result is what came of a case.
type result struct {
	reply  string
	events []string // that the other module heard
	acted  int64    // how often it acted
	left   string   // what is at the target then, as text
}

var longNumbers = regexp.MustCompile(`\d{4,}`)

// runCase runs a case on an empty server.
func (s *server) runCase(c hostileCase) (r result) {
	s.t.Helper()
	pipe := s.Pipeline()
	pipe.Do(ctx, "FLUSHALL", "SYNC")
	pipe.Do(ctx, "HSET", "theirs", "theirs", "theirs")
	for i, state := range c.states {
		if state != '0' {
			pipe.Do(ctx, fields(c.call.makes[i])...)
		}
		if state == '2' {
			pipe.Do(ctx, "HOSTILE.ACT", "expire", c.call.key(i))
		}
	}
	for range c.times {
		pipe.Do(ctx, "HOSTILE.ACT", c.action, c.target)
	}
	pipe.Do(ctx, "HOSTILE.DO", c.event, c.action, c.target)
	call := pipe.Do(ctx, fields(c.call.line)...)
	off := pipe.Do(ctx, "HOSTILE.OFF")
	left := []*redis.Cmd{pipe.Do(ctx, "GET", c.target), pipe.Do(ctx, "HGET", c.target, "theirs"), pipe.Do(ctx, "PTTL", c.target)}
	_, _ = pipe.Exec(ctx)
	require.NoError(s.t, off.Err(), "%+v: the server ended", c)
	heard := off.Val().([]any)
	r.reply, r.acted, r.events = longNumbers.ReplaceAllString(flat(call.Result()), "N"), heard[0].(int64), strings.Fields(heard[1].(string))
	for _, cmd := range left {
		r.left += flat(cmd.Result()) + " "
	}
	return r
}

// allowed returns the replies that are true at some time: in any state of the keys, or as if the action came before the call,
// once or for each key. Newer servers let a module that hears an event use keys that have expired.
func (s *server) allowed(c hostileCase, quiet map[string]result) map[string]bool {
	all := map[string]bool{}
	for _, r := range quiet {
		all[r.reply] = true
	}
	revived := []byte(c.states)
	for i := range revived {
		if revived[i] == '2' && c.call.key(i) == c.target {
			revived[i] = '1'
		}
	}
	for _, c.states = range []string{c.states, string(revived)} {
		for c.times = 1; c.times <= len(c.states); c.times++ {
			c.event = "none"
			all[s.runCase(c).reply] = true
		}
	}
	return all
}

// No transcript has another module, which may do anything to any key of a call in any event that it hears. The server lives, the
// reply is true before or after that, and what the other module has written stays.
func TestHostile(t *testing.T) {
	lasts(t)
	s := startHostile(t)
	cases, acted := 0, map[string]int64{}
	for _, call := range hostileCalls() {
		quiet := map[string]result{}
		for i := range []int{3, 9, 27}[len(call.makes)-1] {
			states := string([]byte{"012"[i%3], "012"[i/3%3], "012"[i/9]})[:len(call.makes)]
			quiet[states] = s.runCase(hostileCase{call, states, "none", "del", "a", 0})
		}
		for states := range quiet {
			for i := range len(hostileActions) * len(states) {
				c := hostileCase{call, states, "", hostileActions[i/len(states)], call.key(i % len(states)), 0}
				var allowed map[string]bool
				for _, c.event = range quiet[states].events {
					r := s.runCase(c)
					cases++
					if acted[c.event+" "+c.action] += r.acted; r.acted == 0 {
						continue
					}
					if allowed == nil {
						allowed = s.allowed(c, quiet)
					}
					require.True(t, allowed[r.reply], "%+v: reply %s, want one of %v", c, r.reply, allowed)
					if c.action == "set" {
						require.Equal(t, "theirs WRONGTYPE Operation against a key holding the wrong kind of value -1 ", r.left, "%+v", c)
					}
					if makes := call.makes[i%len(states)]; c.action == "hset" && strings.HasPrefix(makes, "GO.THROTTLE") {
						require.Contains(t, r.left, " theirs ", "%+v", c)
					}
				}
			}
		}
	}
	t.Logf("%d cases; acted: %v", cases, acted)
	for i, action := range hostileActions {
		for _, event := range []string{"expired", "keymiss", "new", "hset", "zadd", "set", "del", "expire"} {
			if event != "new" || i < len(hostileActions)-2 {
				assert.Positive(t, acted[event+" "+action], "%s in %s", action, event)
			}
		}
	}
	assert.Equal(t, "0", s.info("gothrottle", "gothrottle_panics"))
}
