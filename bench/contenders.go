package main

import (
	_ "embed"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
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

// Who a contender belongs to.
const (
	theFloor = iota // what the server does, and the least that any module does
	ours
	rival // what people do today
	peer  // the module in PEER
)

// What the replies of a contender must say, or the figures are worthless.
const (
	anything = iota
	admitted
	denied
	nearlyFull // admitted, with at least 90 % of the limit in use
)

// A contender is one way to answer a call, and how to measure it.
type contender struct {
	name   string
	by     int
	module string // the file that its server loads, if any
	script string // what {sha} stands for
	text   string // the op: see compile
	warm   string // the op that makes the state; "" if text does
	passes int64  // of the warm-up over the keys; 1 if 0
	keys   int64  // 0: as many as the run has
	expect int
	judge  func([]int64) sample

	// Windows: sent at a fixed rate, so that a window holds calls ops.
	calls int64

	memory  bool   // bytes per key are measured
	filled  string // the op that makes a key then; "" if text does
	aof     bool   // AOF bytes per op are measured
	onlyCPU bool   // no latency
	pinned  bool   // measured again with the server on one CPU
}

// The words of the contenders. A unit drains in 60 s, so that whatever the throughput,
// no key is void within a run and none is full. The key's expiry moves every 15 calls: the
// warm-up puts the keys at different places of those 15.
const (
	rate     = "1000000 60 3600"
	restRate = "1000000 61 3600" // 61 does not divide an hour in ns
	hotRate  = "999999999 60 60" // enough for one key to admit all calls

	// A unit in 2 s, as in the README's first example: a number of 32 bits in ns. The
	// quantity keeps the key for two minutes.
	filledRate = "100 30 60 60"
)

// Three limits that drain a unit per minute: of one key in cells, and of three keys, where
// each key has one rate.
const (
	threeCells = "1000000 60 3600 1 1000000 600 36000 1 1000000 1440 86400 1"
	threeKeys  = "1000000 60 3600 1 1000000 60 3600 1 1000000 60 3600 1"
)

// multi is what a client sends for a sliding window without a script. The entry is added
// whatever the count, which only the reply tells.
const multi = "MULTI ; ZREMRANGEBYSCORE {key} -inf {old} ; ZCARD {key} ; ZADD {key} {now} {id} ; PEXPIRE {key} {period} ; EXEC"

func warmGCRA(command, rate string) string {
	return command + " {key} " + rate + " 1 ; " + command + " {key} " + rate + " {phase}"
}

// contenders returns all of them, in the order of the rounds and of the report.
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
		{name: "GO.THROTTLE_RO", text: "GO.THROTTLE_RO {key} " + rate, warm: "GO.THROTTLE {key} " + rate, expect: admitted},
		{name: "GO.WINDOW 100", text: "GO.WINDOW {key} 100 {period} MS", calls: 95, expect: nearlyFull,
			aof: true, memory: true, pinned: true},
		{name: "GO.WINDOW 10^4", text: "GO.WINDOW {key} 10000 {period} 100 MS", calls: 95, expect: nearlyFull},
		{name: "GO.WINDOW 10^6", text: "GO.WINDOW {key} 1000000 {period} 10000 MS", calls: 95, expect: nearlyFull,
			aof: true, memory: true},
		{name: "GO.WINDOW 1000 EXACT", text: "GO.WINDOW {key} 1000 {period} MS EXACT", calls: 950, expect: nearlyFull},
		{name: "GO.QUOTA", text: "GO.QUOTA {key} 1000000 60", expect: admitted, aof: true, memory: true, pinned: true},
		{name: "GO.MTHROTTLE 3 cells", text: "GO.MTHROTTLE 3 {key} {key} {key} " + threeCells,
			warm: "GO.MTHROTTLE 3 {key} {key} {key} " + threeCells + " ; GO.MTHROTTLE 3 {key} {key} {key} " +
				strings.ReplaceAll(threeCells+" ", "00 1 ", "00 {phase} "),
			expect: admitted, aof: true, memory: true},
		{name: "GO.MTHROTTLE 3 keys", text: "GO.MTHROTTLE 3 {key} {other} {other} " + threeKeys,
			warm: warmGCRA("GO.THROTTLE", rate), expect: admitted, aof: true, pinned: true},
		{name: "3 x GO.THROTTLE pipelined", text: "GO.THROTTLE {key} " + rate + " ; GO.THROTTLE {other} " + rate + " ; GO.THROTTLE {other} " + rate,
			warm: warmGCRA("GO.THROTTLE", rate), expect: admitted, aof: true, onlyCPU: true},
		{name: "GO.LEASE renewed", text: "GO.LEASE {key} 100 3600 {slot}", keys: 1000, passes: 100, expect: admitted, aof: true},
		{name: "GO.LEASE new", text: "GO.LEASE {key} 100 {period} {id} MS", calls: 95, expect: nearlyFull, aof: true},

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

// choose returns the contenders whose names match a pattern.
func choose(list []*contender, pattern string) ([]*contender, error) {
	names, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(c *contender) bool { return !names.MatchString(c.name) })
	if len(list) == 0 {
		return nil, fmt.Errorf("no contender is called %q", pattern)
	}
	return list, nil
}

// judgeFlag reads limited, limit, remaining, the way all limiters here begin their reply.
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

// judgeMulti reads what EXEC returns: removed, how many there were, added, whether the
// expiry was set.
func judgeMulti(ints []int64) sample {
	if len(ints) != 4 || ints[2] != 1 || ints[3] != 1 {
		return sample{limited: true}
	}
	return sample{limited: ints[1] >= 100, used: float64(ints[1]+1) / 100}
}

// errDisturbed is that a window was not as full as it should be: the load generator came
// too late.
var errDisturbed = errors.New("is this machine busy?")

// check says what is wrong with the replies, if anything is.
func (c *contender) check(t tally) error {
	if c.expect == anything {
		return nil
	}
	if t.samples == 0 {
		return fmt.Errorf("%s: no reply was looked at", c.name)
	}
	limited, used := float64(t.limited)/float64(t.samples), t.used/float64(t.samples)
	switch {
	case c.expect == denied && limited < 0.99:
		return fmt.Errorf("%s: all calls should be denied, and %.1f %% were admitted", c.name, 100-100*limited)
	case c.expect == nearlyFull && (limited > 0.01 || used < 0.9):
		return fmt.Errorf("%s: windows should be 90 to 99 %% full, and are %.1f %% full with %.1f %% denied: %w",
			c.name, 100*used, 100*limited, errDisturbed)
	case c.expect != denied && limited > 0.01:
		return fmt.Errorf("%s: all calls should be admitted, and %.1f %% were denied", c.name, 100*limited)
	}
	return nil
}

// traffic returns the ops of one kind, of c.text or c.warm.
func (c *contender) traffic(o *options, text, sha string, keys int64, period time.Duration) (*traffic, error) {
	op, err := compile(text, map[string]string{"{sha}": sha, "{period}": fmt.Sprint(period.Milliseconds())})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	t := &traffic{op: op, keys: keys, depth: o.depth, period: period}
	if c.calls > 0 {
		t.rate = float64(keys*c.calls) / period.Seconds()
	}
	return t, nil
}
