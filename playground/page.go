//go:build js

package main

import (
	"encoding/binary"
	"math"
	"syscall/js"

	"gothrottle/commands/memory"
	"gothrottle/funnel"
)

var read *traffic // the log that the page read last

// main gives the page an object with functions, which program.js describes.
func main() {
	js.Global().Set("gothrottle", map[string]any{
		"run":   function(func(args []js.Value) any { return value(runScript(args[0].String())) }),
		"print": function(printLast),
		"read":  function(readLog),
		"rate": function(func(args []js.Value) any {
			return read.setRate(funnel.Rate{Count: int64(args[0].Int()), Period: funnel.Nanos(args[1].Int()) * funnel.Millisecond})
		}),
		"decide":    function(decide),
		"recommend": function(recommend),
	})
	select {}
}

func function(f func(args []js.Value) any) js.Func {
	return js.FuncOf(func(_ js.Value, args []js.Value) any { return f(args) })
}

// value returns a reply as js.ValueOf takes it. An error becomes {error: text}.
func value(reply any) any {
	switch v := reply.(type) {
	case memory.Status:
		return string(v)
	case error:
		return map[string]any{"error": v.Error()}
	case []any:
		for i := range v {
			v[i] = value(v[i])
		}
	}
	return reply
}

// printLast returns the last reply of a script as redis-cli prints it.
func printLast(args []js.Value) any {
	replies := runScript(args[0].String())
	return printed(replies[len(replies)-1], "")
}

// readLog takes the bytes of two arrays: the times in ms since the Unix epoch, as float64, and the users as int32.
func readLog(args []js.Value) any {
	times, users := make([]byte, args[0].Length()), make([]byte, args[1].Length())
	js.CopyBytesToGo(times, args[0])
	js.CopyBytesToGo(users, args[1])
	calls := make([][]funnel.Nanos, args[2].Int())
	for i := range len(users) / 4 {
		user, ms := binary.LittleEndian.Uint32(users[4*i:]), math.Float64frombits(binary.LittleEndian.Uint64(times[8*i:]))
		calls[user] = append(calls[user], funnel.Nanos(ms*1000)*funnel.Microsecond)
	}
	read = newTraffic(calls)
	return nil
}

// decide returns the denied calls, the denied users, and pairs of a user and its denied calls.
func decide(args []js.Value) any {
	denied, users := read.decide(int64(args[0].Int()))
	worst := []any{denied, users}
	for _, user := range read.worst(5) {
		worst = append(worst, int64(user), read.hits[user])
	}
	return worst
}

// recommend returns a limit, and the robots.
func recommend(args []js.Value) any {
	limit, robots := read.recommend(args[0].Float())
	all := []any{limit}
	for _, robot := range robots {
		all = append(all, robot)
	}
	return all
}
