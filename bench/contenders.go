package main

import (
	_ "embed"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

//go:embed lua/gcra.lua
var gcraScript string

//go:embed lua/bucket.lua
var bucketScript string

//go:embed lua/window.lua
var windowScript string

//go:embed lua/counter.lua
var counterScript string

// The groups of contenders. A plot gives each group one colour.
const (
	theFloor = iota // commands of the server, and modules that decide nothing
	ours
	rival // limiters without a module, as people build them today
	peer  // the module that PEER names
)

// The replies that a contender must give. Other replies end the run.
const (
	anything = iota
	admitted
	denied
	nearlyFull // admitted, with at least 90 % of the limit in use
)

// A contender is one kind of call and the way to measure it.
type contender struct {
	name   string
	by     int    // the group: theFloor, ours, rival or peer
	module string // the file that the server loads; "" for none
	config string // a configuration of the module and its value, to be set first; "" for none
	script string // the Lua script whose SHA1 replaces {sha}
	text   string // the measured op: see compile
	warm   string // the op that creates the state; text if ""
	passes int64  // passes of the warm-up over the keys; 1 if 0
	keys   int64  // number of keys; the run's number if 0
	expect int    // anything, admitted, denied or nearlyFull
	judge  func([]int64) sample

	// A paced contender has calls > 0. Its ops are sent at a fixed rate, so that a
	// window holds this many of them.
	calls int64
	// aged contenders run for one window period before they are measured, so that
	// their windows hold as many entries as in the long run.
	aged bool

	memory  bool   // measure bytes per key
	filled  string // the op that creates a key for that; text if ""
	aof     bool   // measure bytes per op in the append-only file
	onlyCPU bool   // do not measure latency
	pinned  bool   // measure again with the server on one CPU
}

// Rates. A unit drains in 60 s. So no key becomes void or full during a run, at any
// throughput. The key's expiry moves every 15 calls. The warm-up spreads the keys over
// these 15 calls.
const (
	rate     = "1000000 60 3600"
	restRate = "1000000 61 3600" // 61 does not divide an hour in ns
	hotRate  = "999999999 60 60" // one key admits all calls of a run

	// A unit drains in 2 s, as in the README's first example. The interval in ns has 32
	// bits. The quantity keeps the key for two minutes.
	filledRate = "100 30 60 60"
)

// Calls with several limits.
const (
	// Three cells of one key. Each drains a unit per minute.
	threeCells = "THROTTLE 1000000 60 3600 1 THROTTLE 1000000 600 36000 1 THROTTLE 1000000 1440 86400 1"
	// Three keys. GO.ALL refuses a key that is named twice, so the keys always differ.
	threeKeys = "{key} THROTTLE " + rate + " KEY {other} THROTTLE " + rate + " KEY {third} THROTTLE " + rate
	// The four limits of an LLM gateway: requests per minute, tokens per minute, spend
	// per day, concurrent calls. The four keys of a tenant share a hash tag.
	gateway = "{{key}}:rpm THROTTLE 1000000 60 3600000" +
		" KEY {{key}}:tpm WINDOW 1000000000000 {period} 500" +
		" KEY {{key}}:spend QUOTA 1000000000000 86400000 20" +
		" KEY {{key}}:calls LEASE 100 3600000 {slot} MS"
)

// counted switches the counting of denials for GO.TOP on.
const counted = "gothrottle.top-keys 1000"

// multi is the sliding window of clients that use no script. It adds the entry before the
// client sees the count, so denied calls count, too.
const multi = "MULTI ; ZREMRANGEBYSCORE {key} -inf {old} ; ZCARD {key} ; ZADD {key} {now} {id} ; PEXPIRE {key} {period} ; EXEC"

func warmGCRA(command, rate string) string {
	return command + " {key} " + rate + " 1 ; " + command + " {key} " + rate + " {phase}"
}

// contenders returns all contenders. Rounds and tables have the same order.
func contenders(o *options) []*contender {
	list := []*contender{
		{name: "PING", text: "PING"},
		{name: "PING at windows' rate", text: "PING", calls: 95, onlyCPU: true},
		{name: "INCR", text: "INCR {key}", aof: true},
		{name: "INCR hot key", text: "INCR {hot}", keys: 1},
		{name: "SET PX", text: "SET {key} 1 PX 60000", aof: true, memory: true, pinned: true},

		{name: "any module: reply, hot key", module: o.plain, text: "PLAIN.LEAST {hot} 1 1 3600", keys: 1, onlyCPU: true},
		{name: "any module: and read, hot key", module: o.plain, text: "PLAIN.LEAST {hot} 2 1 3600",
			warm: "PLAIN.LEAST {hot} 4 1 3600", keys: 1, onlyCPU: true},
		{name: "any module: and read", module: o.plain, text: "PLAIN.LEAST {key} 2 60 3600",
			warm: "PLAIN.LEAST {key} 4 60 3600", onlyCPU: true},
		{name: "any module: and write", module: o.plain, text: "PLAIN.LEAST {key} 4 60 3600", onlyCPU: true},

		{name: "GO.THROTTLE", text: "GO.THROTTLE {key} " + rate, warm: warmGCRA("GO.THROTTLE", rate),
			expect: admitted, aof: true, memory: true, filled: "GO.THROTTLE {key} " + filledRate, pinned: true},
		{name: "GO.THROTTLE with a rest", text: "GO.THROTTLE {key} " + restRate, warm: warmGCRA("GO.THROTTLE", restRate),
			expect: admitted, aof: true, memory: true, filled: "GO.THROTTLE {key} 100 7 60 14"},
		{name: "GO.THROTTLE hot key", text: "GO.THROTTLE {hot} " + hotRate, keys: 1, expect: admitted},
		{name: "GO.THROTTLE denied", text: "GO.THROTTLE {hot} 0 1 3600", keys: 1, expect: denied, aof: true, pinned: true},
		{name: "GO.THROTTLE denied, counted", config: counted, text: "GO.THROTTLE {hot} 0 1 3600", keys: 1, expect: denied, onlyCPU: true},
		{name: "GO.THROTTLE denied, all keys", text: "GO.THROTTLE {key} 0 1 3600", passes: 2, expect: denied, onlyCPU: true},
		{name: "GO.THROTTLE denied, all keys, counted", config: counted, text: "GO.THROTTLE {key} 0 1 3600", passes: 2, expect: denied, onlyCPU: true},
		{name: "GO.THROTTLE locked out", text: "GO.THROTTLE {hot} 0 1 3600 1 LOCKOUT 3600", keys: 1, expect: denied, onlyCPU: true},
		{name: "GO.THROTTLE with LOCKOUT", text: "GO.THROTTLE {key} " + rate + " 1 LOCKOUT 60", warm: warmGCRA("GO.THROTTLE", rate),
			expect: admitted, onlyCPU: true},
		{name: "GO.THROTTLE with RESERVE", text: "GO.THROTTLE {key} " + rate + " 1 RESERVE 60", warm: warmGCRA("GO.THROTTLE", rate),
			expect: admitted, onlyCPU: true},
		{name: "GO.THROTTLE with FORCE", text: "GO.THROTTLE {key} " + rate + " 1 FORCE", warm: warmGCRA("GO.THROTTLE", rate),
			expect: admitted, onlyCPU: true},
		{name: "GO.POLICY", config: "gothrottle.policies bench THROTTLE 1000000 60 3600s", text: "GO.POLICY bench:{key}",
			warm: "GO.POLICY bench:{key} 1 ; GO.POLICY bench:{key} {phase}", expect: admitted, onlyCPU: true},
		{name: "GO.INFO", text: "GO.INFO {key}", warm: "GO.THROTTLE {key} " + rate, onlyCPU: true},
		{name: "GO.THROTTLE_RO", text: "GO.THROTTLE_RO {key} " + rate, warm: "GO.THROTTLE {key} " + rate, expect: admitted},
		{name: "GO.WINDOW 100", text: "GO.WINDOW {key} 100 {period} MS", calls: 95, expect: nearlyFull,
			aof: true, memory: true, pinned: true},
		{name: "GO.WINDOW 10^4", text: "GO.WINDOW {key} 10000 {period} 100 MS", calls: 95, expect: nearlyFull, onlyCPU: true},
		{name: "GO.WINDOW 10^6", text: "GO.WINDOW {key} 1000000 {period} 10000 MS", calls: 95, expect: nearlyFull,
			aof: true, memory: true, onlyCPU: true},
		{name: "GO.WINDOW 1000 EXACT", text: "GO.WINDOW {key} 1000 {period} MS EXACT", calls: 950, expect: nearlyFull, onlyCPU: true},
		{name: "GO.QUOTA", text: "GO.QUOTA {key} 1000000 60", expect: admitted, aof: true, memory: true, pinned: true},
		{name: "GO.ALL 3 cells", text: "GO.ALL {key} " + threeCells,
			warm: "GO.ALL {key} " + threeCells + " ; GO.ALL {key} " +
				strings.ReplaceAll(threeCells+" ", "00 1 ", "00 {phase} "),
			expect: admitted, aof: true, memory: true},
		{name: "GO.ALL 3 keys", text: "GO.ALL " + threeKeys,
			warm: warmGCRA("GO.THROTTLE", rate), expect: admitted, aof: true, pinned: true},
		{name: "3 x GO.THROTTLE pipelined", text: "GO.THROTTLE {key} " + rate + " ; GO.THROTTLE {other} " + rate + " ; GO.THROTTLE {third} " + rate,
			warm: warmGCRA("GO.THROTTLE", rate), expect: admitted, aof: true, onlyCPU: true},
		{name: "GO.ALL gateway", text: "GO.ALL " + gateway, keys: 500, aged: true, expect: admitted, aof: true},
		{name: "GO.LEASE renewed", text: "GO.LEASE {key} 100 3600 {slot}", keys: 1000, passes: 100, expect: admitted, aof: true},
		{name: "GO.LEASE new", text: "GO.LEASE {key} 100 {period} {id} MS", calls: 95, expect: nearlyFull, aof: true, onlyCPU: true},

		{name: "GCRA in Lua", by: rival, script: gcraScript, text: "EVALSHA {sha} 1 {key} " + rate + " 1",
			expect: admitted, aof: true, memory: true, filled: "EVALSHA {sha} 1 {key} " + filledRate},
		{name: "token bucket in Lua", by: rival, script: bucketScript, text: "EVALSHA {sha} 1 {key} 1000000 0.0166667 1",
			expect: admitted, aof: true, memory: true},
		{name: "zset window in Lua", by: rival, script: windowScript, text: "EVALSHA {sha} 1 {key} 100 {period} {id}",
			calls: 95, expect: nearlyFull, aof: true, memory: true},
		{name: "zset window by MULTI", by: rival, text: multi, calls: 95, expect: nearlyFull, judge: judgeMulti, aof: true},
		{name: "INCR + EXPIRE in Lua", by: rival, script: counterScript, text: "EVALSHA {sha} 1 {key} 60000",
			aof: true, memory: true},
		{name: "plain C module", by: rival, module: o.plain, text: "PLAIN.THROTTLE {key} " + rate, expect: admitted,
			aof: true, memory: true, filled: "PLAIN.THROTTLE {key} " + filledRate},
	}
	if o.peer != "" {
		file := strings.TrimSuffix(filepath.Base(o.peer), ".so")
		file = strings.ReplaceAll(strings.TrimPrefix(file, "lib"), "_", "-")
		name := func(text string) string {
			command, _, _ := strings.Cut(text, " ")
			return fmt.Sprintf("%s of %s", command, file)
		}
		list = append(list,
			&contender{name: name(o.peerCmd), by: peer, module: o.peer, text: o.peerCmd, expect: admitted, aof: true, memory: true},
			&contender{name: name(o.peerDenied) + " denied", by: peer, module: o.peer, text: o.peerDenied, keys: 1, expect: denied})
	}
	for _, c := range list {
		if c.by == theFloor && strings.Contains(c.text, "GO.") {
			c.by, c.module = ours, o.module
		}
		if c.judge == nil && c.expect != anything {
			c.judge = judgeFlag
		}
	}
	return list
}

// judgeFlag reads a limiter's reply. It begins with limited, limit, remaining.
func judgeFlag(ints []int64) sample {
	if len(ints) == 0 {
		return sample{limited: true}
	}
	s := sample{limited: ints[0] != 0}
	if len(ints) >= 3 && ints[1] > 0 {
		s.used = 1 - float64(ints[2])/float64(ints[1])
	}
	return s
}

// judgeMulti reads the reply of EXEC in multi: entries removed, entries left, entries
// added, 1 if the expiry was set.
func judgeMulti(ints []int64) sample {
	if len(ints) != 4 || ints[2] != 1 || ints[3] != 1 {
		return sample{limited: true}
	}
	return sample{limited: ints[1] >= 100, used: float64(ints[1]+1) / 100}
}

// errDisturbed says that the load generator was late, so that the state was not the one
// that is to be measured. The slice is repeated.
var errDisturbed = errors.New("is this machine busy?")

// check returns an error if the replies are not those that the contender expects.
func (c *contender) check(t tally) error {
	if c.expect == anything {
		return nil
	}
	if t.samples == 0 {
		return errors.New("no reply was looked at")
	}
	limited, used := float64(t.limited)/float64(t.samples), t.used/float64(t.samples)
	switch {
	case c.expect == denied && limited < 0.99:
		return fmt.Errorf("all calls should be denied, and %.1f %% were admitted", 100-100*limited)
	case c.expect == nearlyFull && (limited > 0.01 || used < 0.9):
		return fmt.Errorf("windows should be 90 to 99 %% full, and are %.1f %% full with %.1f %% denied: %w",
			100*used, 100*limited, errDisturbed)
	case c.expect != denied && limited > 0.01:
		return fmt.Errorf("all calls should be admitted, and %.1f %% were denied", 100*limited)
	}
	return nil
}

// traffic returns the traffic whose op is text: c.text, c.warm or c.filled.
func (c *contender) traffic(o *options, text, sha string, keys int64, period time.Duration) (*traffic, error) {
	op, err := compile(text, map[string]string{"{sha}": sha, "{period}": fmt.Sprint(period.Milliseconds())})
	if err != nil {
		return nil, err
	}
	t := &traffic{op: op, keys: keys, depth: o.depth, period: period}
	if c.calls > 0 {
		t.rate = float64(keys*c.calls) / period.Seconds()
	}
	return t, nil
}
