package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The verdicts that a row's calls may get. Another one ends the run.
const admitted, denied, anything = 0, 1, 2

// A row is one kind of call and the way to measure it.
type row struct {
	name    string
	call    string // see fill; several commands with " ; " between them are one op
	warm    string // what visits each key after a first call, for the state of the long run
	keys    int    // 100,000 if 0
	verdict int
	paced   int    // calls go out at a steady rate, so that each key gets this many in a period
	times   int    // calls that make one op, if there are several
	full    string // the call that fills keys for the measurement of memory, if it is another
	also    string // what is measured beside CPU: M memory, A append-only file, P pinned to one CPU, L latency
	load    string // a module, or the file of a Lua script
	config  string // a configuration of the module
}

func (r row) String() string { return "row=" + r.name }

// Rates at which a unit drains in 60 s, so that no key becomes void or full in a run. 61 does not divide an hour in ns. One
// key at hotRate admits all calls of a run. At fullRate, that of the README's first example, a unit drains in 2 s.
const (
	rate     = "1000000 60 3600"
	restRate = "1000000 61 3600"
	unitRate = "1000000 60 1h"
	hotRate  = "999999999 60 60"
	fullRate = "100 30 60 60"
	counted  = "gothrottle.top-keys 1000"
)

const (
	threeCells = "GO.ALL {key} THROTTLE 1000000 60 3600 %[1]s THROTTLE 1000000 600 36000 %[1]s THROTTLE 1000000 1440 86400 %[1]s"
	threeKeys  = "GO.ALL a{n} THROTTLE " + rate + " %[1]s KEY b{n} THROTTLE " + rate + " %[1]s KEY c{n} THROTTLE " + rate + " %[1]s"
	// The limits of a gateway to a language model: requests and tokens per minute, spend per day, concurrent calls.
	gateway = "GO.ALL r{n} THROTTLE 1000000 60 3600000 KEY t{n} WINDOW 1000000000000 {period} 500 KEY s{n} QUOTA 1000000000000 86400000 20" +
		" KEY c{n} LEASE 100 3600000 {n} MS"
	// The sliding window of clients without scripts. It adds the entry before the client sees the count.
	multi = "MULTI ; ZREMRANGEBYSCORE {key} -inf {old} ; ZCARD {key} ; ZADD {key} {now} {id} ; PEXPIRE {key} {period} ; EXEC"
)

// rows returns the rows of which this is measured, in the order of the tables.
func rows(also string) []row {
	plain := os.Getenv("PLAIN") // the module of plain/plain.c
	throttle := func(name, call string, r row) row {
		r.name, r.call = name, "GO.THROTTLE {key} "+call
		if limit, _, many := strings.Cut(call, "3600"); many && r.keys == 0 {
			r.warm = "GO.THROTTLE {key} " + limit + "3600 {phase}"
		}
		return r
	}
	one := row{keys: 1, verdict: denied}
	script := func(name, words string) row {
		return row{name: "script: " + name, load: "../script/gothrottle.lua", call: "EVALSHA {sha} " + words}
	}
	list := []row{
		{name: "PING", call: "PING", verdict: anything},
		{name: "PING at windows' rate", call: "PING", verdict: anything, paced: 95},
		{name: "INCR", call: "INCR {key}", verdict: anything, also: "A"},
		{name: "INCR hot key", call: "INCR {key}", keys: 1, verdict: anything},
		{name: "SET PX", call: "SET {key} 1 PX 60000", verdict: anything, also: "MAPL"},
		{name: "any module: reply, hot key", load: plain, call: "PLAIN.LEAST {key} 1", keys: 1},
		{name: "any module: and read, hot key", load: plain, call: "PLAIN.LEAST {key} 2", warm: "PLAIN.LEAST {key} 4", keys: 1},
		{name: "any module: and read", load: plain, call: "PLAIN.LEAST {key} 2", warm: "PLAIN.LEAST {key} 4"},
		{name: "any module: and write", load: plain, call: "PLAIN.LEAST {key} 4"},
		throttle("GO.THROTTLE", rate, row{full: "GO.THROTTLE {key} " + fullRate, also: "MAPL"}),
		throttle("GO.THROTTLE with a rest", restRate, row{full: "GO.THROTTLE {key} 100 7 60 14", also: "MA"}),
		throttle("GO.THROTTLE hot key", hotRate, row{keys: 1}),
		throttle("GO.THROTTLE 15 30 60", "15 30 60", row{keys: 1, verdict: anything, also: "L"}), // redis-cell's published parameters
		throttle("GO.THROTTLE denied", "0 1 3600", row{keys: 1, verdict: denied, also: "APL"}),
		throttle("GO.THROTTLE denied, counted", "0 1 3600", row{keys: 1, verdict: denied, config: counted}),
		throttle("GO.THROTTLE denied, all keys", "0 1 3600", row{verdict: denied}),
		throttle("GO.THROTTLE denied, all keys, counted", "0 1 3600", row{verdict: denied, config: counted}),
		throttle("GO.THROTTLE locked out", "0 1 3600 1 LOCKOUT 3600", one),
		throttle("GO.THROTTLE with a unit", unitRate, row{}),
		throttle("GO.THROTTLE with LOCKOUT", rate+" 1 LOCKOUT 60", row{}),
		throttle("GO.THROTTLE with RESERVE", rate+" 1 RESERVE 60", row{}),
		throttle("GO.THROTTLE with FORCE", rate+" 1 FORCE", row{}),
		{name: "GO.POLICY", config: "gothrottle.policies k THROTTLE 1000000 60 3600s", call: "GO.POLICY k:{n}", warm: "GO.POLICY k:{n} {phase}"},
		{name: "GO.INFO", call: "GO.INFO {key}", warm: "GO.THROTTLE {key} " + rate, verdict: anything},
		{name: "GO.THROTTLE_RO", call: "GO.THROTTLE_RO {key} " + rate, warm: "GO.THROTTLE {key} " + rate},
		{name: "GO.WINDOW 100", call: "GO.WINDOW {key} 100 {period} MS", paced: 95, also: "MAPL"},
		{name: "GO.WINDOW 10^4", call: "GO.WINDOW {key} 10000 {period} 100 MS", paced: 95},
		{name: "GO.WINDOW 10^6", call: "GO.WINDOW {key} 1000000 {period} 10000 MS", paced: 95, also: "MA"},
		{name: "GO.WINDOW 1000 EXACT", call: "GO.WINDOW {key} 1000 {period} MS EXACT", paced: 950},
		{name: "GO.QUOTA", call: "GO.QUOTA {key} 1000000 60", also: "MAP"},
		{name: "GO.ALL 3 cells", call: fmt.Sprintf(threeCells, "1"), warm: fmt.Sprintf(threeCells, "{phase}"), also: "MAL"},
		{name: "GO.ALL 3 keys", call: fmt.Sprintf(threeKeys, "1"), warm: fmt.Sprintf(threeKeys, "{phase}"), also: "AP"},
		{name: "GO.ALL tenant", call: "GO.ALL a{n} THROTTLE " + rate + " KEY b{n} WINDOW 1000000 3600"},
		{name: "GO.ALL tenant, SHARE", call: "GO.ALL a{n} THROTTLE " + rate + " KEY b{n} WINDOW 1000000 3600 SHARE 1000"},
		{name: "GO.ALL tenant denied", call: "GO.ALL a THROTTLE 1 1 3600 KEY b WINDOW 1 3600", keys: 1, verdict: denied},
		{name: "GO.ALL tenant denied, SHARE", call: "GO.ALL a THROTTLE 1 1 3600 KEY b WINDOW 100 3600 SHARE 1", keys: 1, verdict: denied},
		throttle("3 x GO.THROTTLE pipelined", rate, row{times: 3}),
		{name: "GO.ALL gateway", call: gateway, keys: 100, also: "A"},
		{name: "GO.LEASE renewed", call: "GO.LEASE {key} 100 3600 {n}", keys: 100, also: "A"},
		{name: "GO.LEASE new", call: "GO.LEASE {key} 100 {period} {id} MS", paced: 95, also: "A"},
		{name: "GCRA in Lua", load: "lua/gcra.lua", call: "EVALSHA {sha} 1 {key} " + rate + " 1",
			full: "EVALSHA {sha} 1 {key} " + fullRate, also: "MAL"},
		{name: "token bucket in Lua", load: "lua/bucket.lua", call: "EVALSHA {sha} 1 {key} 1000000 0.0166667 1", also: "MA"},
		{name: "zset window in Lua", load: "lua/window.lua", call: "EVALSHA {sha} 1 {key} 100 {period} {id}", paced: 95, also: "MA"},
		{name: "zset window by MULTI", call: multi, verdict: anything, paced: 95, also: "A"},
		{name: "INCR + EXPIRE in Lua", load: "lua/counter.lua", call: "EVALSHA {sha} 1 {key} 60000", verdict: anything, also: "MA"},
		{name: "two counters in Lua", load: "lua/counters.lua", call: "EVALSHA {sha} 2 a{n} b{n} 1000000 60000 1800000000000000 1"},
		script("GO.THROTTLE", "1 {key} GO.THROTTLE 100000 60 3600"),
		script("GO.THROTTLE with a rest", "1 {key} GO.THROTTLE 1000 61 3600"),
		script("GO.THROTTLE with UPTO", "1 {key} GO.THROTTLE 100000 60 3600 1 UPTO"),
		script("GO.THROTTLE with LOCKOUT", "1 {key} GO.THROTTLE 100000 60 3600 1 LOCKOUT 60"),
		script("GO.WINDOW 100", "1 {key} GO.WINDOW 100 3600"),
		script("GO.QUOTA", "1 {key} GO.QUOTA 1000000 60"),
		{name: "script: GO.LEASE renewed", load: "../script/gothrottle.lua", call: "EVALSHA {sha} 1 {key} GO.LEASE 100 3600 {n}", keys: 100},
		script("GO.ALL 2 keys", "2 a{n} b GO.ALL THROTTLE 100000 60 3600 KEY b QUOTA 1000000000 60"), // redis-benchmark draws each number by itself
	}
	if peer := os.Getenv("PEER"); peer != "" {
		file := strings.ReplaceAll(strings.TrimPrefix(strings.TrimSuffix(filepath.Base(peer), ".so"), "lib"), "_", "-")
		call, no := cmp.Or(os.Getenv("PEER_CMD"), "CL.THROTTLE {key} "+rate), cmp.Or(os.Getenv("PEER_DENIED_CMD"), "CL.THROTTLE {key} 0 1 3600")
		list = append(list, row{name: strings.Fields(call)[0] + " of " + file, load: peer, call: call, also: "MAL"},
			row{name: strings.Fields(no)[0] + " of " + file + " denied", load: peer, call: no, keys: 1, verdict: denied})
	}
	return slices.DeleteFunc(list, func(r row) bool { return !strings.Contains(r.also, also) })
}
