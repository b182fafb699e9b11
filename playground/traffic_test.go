package main

import (
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func times(steps iter.Seq[step], n int) (all []int64) {
	for s := range steps {
		if len(all) == n {
			break
		}
		all = append(all, s.at.Milliseconds())
	}
	return all
}

// Each pattern sends its calls at the times that its name says.
func TestTraffic_patterns(t *testing.T) {
	aim := Spec{Kind: "quota", Limit: 3, Quantity: 1, Period: 5000}
	require.Equal(t, []int64{0, 250, 500}, times(Traffic{Pattern: "steady", Rate: 4}.steps(aim), 3))
	require.Equal(t, []int64{0, 0, 900, 900}, times(Traffic{Pattern: "bursts", Size: 2, Every: 900}.steps(aim), 4))
	require.Equal(t, []int64{0, 4800, 4800, 5200, 5200, 5200, 15_000}, times(Traffic{Pattern: "boundary"}.steps(aim), 7))
	aim.Quantity = 2
	require.Equal(t, []int64{0, 5200, 15_000}, times(Traffic{Pattern: "boundary"}.steps(aim), 3))
}

// The calls of two clients are in the order of time.
func TestTraffic_twoClients(t *testing.T) {
	var got []step
	for s := range (Traffic{Pattern: "clients", Rate: 2, Size: 2, Every: 700, Until: 1000}).steps(Spec{}) {
		got = append(got, s)
	}
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	require.Equal(t, []step{{0, 0}, {0, 1}, {0, 1}, {ms(500), 0}, {ms(700), 1}, {ms(700), 1}, {ms(1000), 0}}, got)
}

// Traffic ends, also if the page forgets it.
func TestTraffic_ends(t *testing.T) {
	last := time.Duration(0)
	for s := range (Traffic{Pattern: "steady", Rate: 0.1}).steps(Spec{}) {
		last = s.at
	}
	require.Equal(t, maxRun, last)
}

// An aligned quota is attacked from the beginning of a window on.
func TestTraffic_waitsForAlignedWindows(t *testing.T) {
	now := time.UnixMilli(1_700_000_001_250)
	attack := Traffic{Pattern: "boundary"}
	require.Equal(t, 3750*time.Millisecond, beforeAttack(attack, Spec{Kind: "quota", Period: 5000, Align: true}, now))
	require.Zero(t, beforeAttack(attack, Spec{Kind: "quota", Period: 5000}, now))
	require.Zero(t, beforeAttack(Traffic{Pattern: "steady"}, Spec{Kind: "quota", Period: 5000, Align: true}, now))
}

// The attack aims at a fixed window, also at one among several limiters of one call.
func TestTraffic_aimsAtTheFixedWindow(t *testing.T) {
	throttle, quota := Spec{Kind: "throttle", Limit: 1, Count: 1, Period: 100}, Spec{Kind: "quota", Limit: 3, Period: 9000}
	require.Equal(t, quota, aimOf([]Spec{throttle, quota}))
	require.Equal(t, quota, aimOf([]Spec{{Kind: "all", Clauses: []Spec{throttle, quota}}}))
	require.Equal(t, throttle, aimOf([]Spec{{Kind: "policy"}, throttle, {Kind: "window", Limit: 2, Period: 300}}))
	require.Positive(t, aimOf([]Spec{{Kind: "policy"}}).Period)
}

func TestTraffic_checkRefuses(t *testing.T) {
	good := Traffic{Pattern: "bursts", Rate: 4, Size: 10, Every: 1000}
	require.NoError(t, good.check())
	for want, change := range map[string]func(*Traffic){
		"no traffic of pattern": func(t *Traffic) { t.Pattern = "flood" },
		"rate must":             func(t *Traffic) { t.Rate = 101 },
		"calls of a burst":      func(t *Traffic) { t.Size = 101 },
		"between bursts":        func(t *Traffic) { t.Every = 199 },
		"the length":            func(t *Traffic) { t.Until = -1 },
	} {
		wrong := good
		change(&wrong)
		require.ErrorContains(t, wrong.check(), want)
	}
}

// The peak counts what fell into one period for certain: neither two windows' ends, nor calls whose instants are doubtful.
func TestPeaks(t *testing.T) {
	p := peaks{period: time.Second}
	at := func(ms int) admission {
		return admission{time.Duration(ms) * time.Millisecond, time.Duration(ms+1) * time.Millisecond, 1}
	}
	for _, ms := range []int{0, 980, 990, 1000, 1010, 1990, 5000} {
		p.add(at(ms))
	}
	require.Equal(t, Peak{4, 980, 1011}, p.most)
	q := peaks{period: time.Second}
	q.add(at(0))
	q.add(at(999)) // replied at 1000: it may have been decided a whole period later
	require.EqualValues(t, 1, q.most.Units)
	q.add(admission{2 * time.Second, 9 * time.Second, 1}) // a call that hung proves nothing
	require.EqualValues(t, 1, q.most.Units)
}
