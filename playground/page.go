//go:build js

package main

import (
	"encoding/binary"
	"math"
	"syscall/js"

	"gothrottle/funnel"
)

var read *traffic // the log that the page read last

// main gives the page an object with functions, which program.js describes.
func main() {
	js.Global().Set("gothrottle", map[string]any{
		"run":      function(func(args []js.Value) any { return text(runScript(args[0].String())) }),
		"print":    function(printLast),
		"commands": function(func([]js.Value) any { return text(table()) }),
		"read":     function(readLog),
		"rate":     function(setRate),
		"decide":   function(func(args []js.Value) any { return text(decide(int64(args[0].Int()))) }),
		"smallest": function(func(args []js.Value) any { return read.smallest(int64(args[0].Int())) }),
	})
	select {}
}

func function(f func(args []js.Value) any) js.Func {
	return js.FuncOf(func(_ js.Value, args []js.Value) any { return f(args) })
}

func text(v []any) string { return string(appendJSON(nil, v)) }

// printLast returns the last reply of a script as redis-cli prints it.
func printLast(args []js.Value) any {
	replies := runScript(args[0].String())
	return printed(replies[len(replies)-1], args[1].Bool())
}

// readLog takes the bytes of two arrays: the times in ms since the Unix epoch, as float64, and the users as int32.
func readLog(args []js.Value) any {
	bytes := func(v js.Value) []byte {
		b := make([]byte, v.Length())
		js.CopyBytesToGo(b, v)
		return b
	}
	times, users := bytes(args[0]), bytes(args[1])
	calls := make([]logged, len(users)/4)
	for i := range calls {
		ms := math.Float64frombits(binary.LittleEndian.Uint64(times[8*i:]))
		calls[i] = logged{funnel.Nanos(ms*1000) * funnel.Microsecond, int32(binary.LittleEndian.Uint32(users[4*i:]))}
	}
	read = newTraffic(calls, args[2].Int())
	return nil
}

func setRate(args []js.Value) any {
	return read.setRate(funnel.Rate{Count: int64(args[0].Int()), Period: funnel.Nanos(args[1].Int()) * funnel.Millisecond})
}

// decide returns the denied calls, the denied users, and pairs of a user and its denied calls.
func decide(limit int64) []any {
	denied, users := read.decide(limit)
	worst := []any{denied, users}
	for _, user := range read.worst(5) {
		worst = append(worst, int64(user), read.hits[user])
	}
	return worst
}
