package main

import (
	"fmt"
	"hash/maphash"
	"slices"
	"sync"

	"github.com/anishathalye/porcupine"

	"gothrottle/funnel"
	"gothrottle/tests/world"
)

// manyCall is a call of one key, and its words.
type manyCall struct {
	*world.Call
	words words
}

// order is what the key of a part of a round holds, and the clock, after some of the operations.
type order struct {
	now  funnel.Micros
	keys world.Keys
	text string // differs for states that differ
}

func newOrder(now funnel.Micros, keys world.Keys) order {
	return order{now, keys, fmt.Sprint(now, keys)}
}

var orderSeed = maphash.MakeSeed()

// orders looks for an order of operations. The input of an operation is a call, or the time that the clock is set to. The
// output is a reply. If it was lost, the call was made or not.
func orders(now funnel.Micros) porcupine.Model {
	type step struct {
		text  string
		input any // an operation's own
	}
	// The results of steps. The checker asks for each about twenty times: without this, some rounds take minutes.
	var known sync.Map
	m := porcupine.NondeterministicModel{
		Partition: byKey,
		Init:      func() []any { return []any{newOrder(now, world.Keys{})} },
		Step: func(state, input, output any) []any {
			s := state.(order)
			next, found := known.Load(step{s.text, input})
			if !found {
				next, _ = known.LoadOrStore(step{s.text, input}, s.next(input, output))
			}
			return next.([]any)
		},
		Equal: func(a, b any) bool { return a.(order).text == b.(order).text },
		Hash:  func(state any) uint64 { return maphash.String(orderSeed, state.(order).text) },
	}
	return m.ToModel()
}

// next returns the states that an operation may lead to: none if the call replies something else.
func (s order) next(input, output any) []any {
	if now, clock := input.(funnel.Micros); clock {
		return []any{newOrder(now, s.keys)}
	}
	call := input.(*manyCall)
	next := s.keys.Clone(call.words[1])
	switch reply, _ := call.Reply(next, s.now); {
	case output == lost:
		return []any{s, newOrder(s.now, next)}
	case output == text(reply):
		return []any{newOrder(s.now, next)}
	}
	return []any{}
}

// byKey has the operations of each key, and the steps of the clock in each part.
func byKey(history []porcupine.Operation) (parts [][]porcupine.Operation) {
	for _, key := range world.TightKeys {
		parts = append(parts, slices.DeleteFunc(slices.Clone(history), func(o porcupine.Operation) bool {
			c, call := o.Input.(*manyCall)
			return call && c.words[1] != key
		}))
	}
	return parts
}

func showHistory(history []porcupine.Operation) (lines string) {
	slices.SortFunc(history, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
	for _, o := range history {
		what := fmt.Sprint("the clock is set to ", o.Input)
		if c, call := o.Input.(*manyCall); call {
			what = fmt.Sprintf("%q: %q", c.words, o.Output)
		}
		lines += fmt.Sprintf("%9.3f to %9.3f ms, client %d, %s\n", float64(o.Call)/1e6, float64(o.Return)/1e6, o.ClientId, what)
	}
	return lines
}
