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
		"run":       js.FuncOf(run),
		"print":     js.FuncOf(printLast),
		"read":      js.FuncOf(readLog),
		"rate":      js.FuncOf(setRate),
		"decide":    js.FuncOf(decide),
		"recommend": js.FuncOf(recommend),
	})
	select {}
}

func run(_ js.Value, args []js.Value) any { return value(runScript(args[0].String())) }

// value returns a reply as js.ValueOf takes it. An error becomes {error: text}.
func value(reply any) any {
	switch v := reply.(type) {
	case memory.Status:
		return string(v)
	case error:
		return map[string]any{"error": v.Error()}
	case memory.Map:
		return value([]any(v))
	case []any:
		for i := range v {
			v[i] = value(v[i])
		}
	}
	return reply
}

// printLast returns the last reply of a script as redis-cli prints it.
func printLast(_ js.Value, args []js.Value) any {
	replies := runScript(args[0].String())
	return printed(replies[len(replies)-1], "")
}

// readLog takes an array of each user's times in ms since the Unix epoch, as the bytes of float64.
func readLog(_ js.Value, args []js.Value) any {
	calls := make([][]funnel.Nanos, args[0].Length())
	for user := range calls {
		times := make([]byte, args[0].Index(user).Length())
		js.CopyBytesToGo(times, args[0].Index(user))
		for ; len(times) > 0; times = times[8:] {
			ms := math.Float64frombits(binary.LittleEndian.Uint64(times))
			calls[user] = append(calls[user], funnel.Nanos(ms*1000)*funnel.Microsecond)
		}
	}
	read = newTraffic(calls)
	return nil
}

func setRate(_ js.Value, args []js.Value) any {
	return read.setRate(funnel.Rate{Count: int64(args[0].Int()), Period: funnel.Nanos(args[1].Int()) * funnel.Millisecond})
}

func decide(_ js.Value, args []js.Value) any {
	denied, users, worst, hits := read.decide(int64(args[0].Int()))
	return []any{denied, users, worst, hits}
}

// recommend returns a limit, and the robots.
func recommend(_ js.Value, args []js.Value) any {
	limit, robots := read.recommend(args[0].Float())
	all := []any{limit}
	for _, robot := range robots {
		all = append(all, robot)
	}
	return all
}
