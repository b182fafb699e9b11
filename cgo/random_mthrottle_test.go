package cgo_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gothrottle/funnel"
)

// cellsOf are the cells of one hash; nil if there is no hash.
type cellsOf []funnel.State

func (cells cellsOf) fields() map[string]string {
	fields := map[string]string{}
	for i, s := range cells {
		for field, value := range hashFields(i, s) {
			fields[field] = value
		}
	}
	return fields
}

// end returns the ns, rounded up, at which the last cell is void.
func (cells cellsOf) end() (end int64) {
	for _, s := range cells {
		end = max(end, s.TAT+min(1, s.Frac))
	}
	return end
}

// Random calls of GO.MTHROTTLE and GO.THROTTLE on the same keys, through all of the
// module, give the same replies and hashes as package funnel gives for one limit after another.
func TestRandom_mthrottle(t *testing.T) {
	w := newWalk(t, "a", "b", "c", "d")
	hashes := map[string]cellsOf{}
	for range rounds(15_000) {
		w.pass(10 * second)
		now := w.now * 1000
		n := pick(w.Rand, 1, 2, 2, 3, 3, 4, 5, 9)
		single := w.IntN(5) == 0
		if single {
			n = 1
		}
		unit, option := int64(1_000_000_000), ""
		if w.IntN(4) == 0 {
			unit, option = 1_000_000, " MS"
		}
		var keys, numbers []string
		index := make([]int, n) // the cell of each limit
		limits, verdicts := make([]int64, n), make([]funnel.Verdict, n)
		rates, next := make([]funnel.Rate, n), make([]funnel.State, n)
		decider, retry := -1, int64(-1)
		for i := range n {
			key := pick(w.Rand, w.keys...)
			if w.gone(key) {
				delete(hashes, key)
			}
			for _, earlier := range keys {
				if earlier == key {
					index[i]++
				}
			}
			keys = append(keys, key)
			// Most calls use one rate per cell and a small burst.
			limits[i] = pick(w.Rand, 1, 5, 5, 16, 1+w.Int64N(100))
			count, period := []int64{30, 7, 60}[(index[i]+int(key[0]))%3], 60_000_000_000/unit
			if w.IntN(30) == 0 {
				count, period = pick[int64](w.Rand, 1, 11, 30), 1+w.Int64N(1000)
			}
			rates[i] = funnel.Rate{Count: count, Period: period * unit}
			quantity := pick(w.Rand, 1, 1, 1, 1, 1, 1, 2, 0, 0, -1, -w.Int64N(20), limits[i], limits[i]+w.Int64N(2))
			numbers = append(numbers, fmt.Sprint(limits[i]-1, count, period, quantity))
			was := funnel.State{}
			if cells := hashes[key]; index[i] < len(cells) {
				was = cells[index[i]]
			}
			next[i], verdicts[i] = funnel.Throttle(now, was, limits[i], rates[i], quantity)
			if v := verdicts[i]; v.Limited {
				wait := roundUp(v.RetryAfter, unit)
				exact := v.RetryAfter
				if decider < 0 || exact == -1 && retry != -1 || retry != -1 && exact > verdicts[decider].RetryAfter {
					decider, retry = i, wait
				}
			}
		}
		changes, touched := false, map[string]bool{}
		var inner []string
		for i := range n {
			v, key := verdicts[i], keys[i]
			if decider >= 0 && !v.Limited {
				was := funnel.State{}
				if cells := hashes[key]; index[i] < len(cells) {
					was = cells[index[i]]
				}
				_, v = funnel.Throttle(now, was, limits[i], rates[i], 0)
				v.Limited, v.RetryAfter = false, -1
			}
			limited := int64(0)
			if v.Limited {
				limited = 1
			}
			inner = append(inner, integers(limited, limits[i], v.Remaining, roundUp(v.RetryAfter, unit), roundUp(v.ResetAfter, unit)))
			if v.Change == funnel.Keep {
				continue
			}
			changes, touched[key] = true, true
			for j := range i { // a cell missing before this one becomes a void cell
				if keys[j] == key && index[j] == len(hashes[key]) {
					hashes[key] = append(hashes[key], funnel.State{TAT: now, Rate: rates[j].Reduced()})
				}
			}
			if index[i] == len(hashes[key]) {
				hashes[key] = append(hashes[key], funnel.State{})
			}
			hashes[key][index[i]] = next[i]
		}
		words := append([]string{"GO.MTHROTTLE", fmt.Sprint(n)}, keys...)
		want := integers(min(1, int64(decider+1)), retry, int64(decider))
		want = want[:len(want)-1] + " " + strings.Join(inner, " ") + "]"
		if single {
			words, want = []string{"GO.THROTTLE", keys[0]}, inner[0]
		}
		words = append(words, strings.Fields(strings.Join(numbers, " ")+option)...)
		for key := range touched {
			if hashes[key].end() <= now {
				delete(hashes, key)
				w.reply["removed"]++
			}
		}
		w.call(want, changes, words...)
		w.reply[[]string{"admitted", "limited"}[min(1, decider+1)]]++
		for _, key := range w.keys {
			if got, want := fmt.Sprint(w.h.HashOf(key)), fmt.Sprint(hashes[key].fields()); got != want {
				t.Fatalf("seed %d, call %d: %q at %d: %s holds %s, want %s; effects %q", w.seed, w.calls, words, now, key, got, want, w.h.Effects())
			}
			if at := w.h.ExpireOf(key); hashes[key] != nil && at < roundUp(hashes[key].end(), 1_000_000) {
				t.Fatalf("seed %d, call %d: %q: %s expires at %d", w.seed, w.calls, words, key, at)
			}
		}
	}
	w.wantOutcomes(200, "admitted", "limited", "removed")
}

// A denied call changes nothing as long as each cell keeps its rate.
func TestRandom_mthrottleDenied(t *testing.T) {
	w := newWalk(t, "a", "b", "c", "d")
	rates := map[string]string{}
	for range rounds(10_000) {
		w.pass(5 * second)
		if slices.ContainsFunc(w.keys, w.gone) {
			for _, key := range w.keys {
				if w.gone(key) {
					w.h.Delete(key) // the server removes an expired key itself
					delete(w.other, key)
				}
			}
		}
		n := 1 + w.IntN(6)
		words, cells := []string{"GO.MTHROTTLE", fmt.Sprint(n)}, map[string]int{}
		var numbers []string
		for range n {
			key := pick(w.Rand, w.keys...)
			words = append(words, key)
			cells[key]++
			cell := fmt.Sprint(key, cells[key])
			if rates[cell] == "" {
				rates[cell] = fmt.Sprint(pick(w.Rand, 1, 7, 30, 1+w.IntN(1000)), " ", pick(w.Rand, 1, 60, 3600))
			}
			burst := pick(w.Rand, 0, 3, 3, 15, 1000)
			numbers = append(numbers, fmt.Sprint(burst), rates[cell], fmt.Sprint(pick(w.Rand, 1, 1, 2, 0, -1, -3, burst+1, burst+2)))
		}
		words = append(words, strings.Fields(strings.Join(numbers, " "))...)
		before := w.h.Dump()
		got := w.h.Call(words...)
		w.calls++
		if got.Err != "" {
			t.Fatalf("%q: %v", words, got)
		}
		if got.Array[0].Int == 0 {
			w.reply["admitted"]++
			if got.Array[1].Int != -1 || got.Array[2].Int != -1 {
				t.Errorf("seed %d: %q: %v", w.seed, words, got)
			}
			continue
		}
		w.reply["limited"]++
		wantNothing(t, w.h, fmt.Sprintf("seed %d: %q: %v", w.seed, words, got), before)
		decider, verdicts := got.Array[2].Int, got.Array[3:]
		if len(verdicts) != n || verdicts[decider].Ints()[0] != 1 || verdicts[decider].Ints()[3] != got.Array[1].Int {
			t.Errorf("seed %d: %q: %v", w.seed, words, got)
		}
		if t.Failed() {
			return
		}
	}
	w.wantOutcomes(1000, "admitted", "limited")
}
