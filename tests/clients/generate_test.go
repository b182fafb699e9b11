// Package clients explores the Go client: random clients with two to four limiters of different options, all verbs, and a
// server in memory with all its faults, in frozen time. A world is made from its seed, so a failure can be repeated and
// shortened. properties_test.go says what must hold in every world.
package clients

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// world is what happens: who asks what when, and which faults a server has meanwhile.
type world struct {
	Kind     string // single, cluster or sentinel
	TLS      bool
	Script   bool
	Far      time.Duration // the round trip
	Lag      time.Duration // of the copies in a cluster, and of those that a Sentinel watches
	Clients  int           // each has all limiters
	Limits   []limit
	Steps    []step
	Faults   []fault
	Rest     time.Duration // from the last call to Close
	CloseAt  time.Duration // when the clients are closed while they are used; 0: never
	Hopeless int           // so many limiters have a time limit in which no reply can come
}

// limit is a limiter with its options.
type limit struct {
	Kind             string // rate, window, quota, slots, unlimited or suspended
	Units            int64
	Period           time.Duration
	Timeout, Lockout time.Duration
	Open, Closed     bool // FailOpen, FailClosed
	Local            bool // FailLocal, a half
	Budget           int64
	Denies           bool
	TTL, Longest     time.Duration // of holds; if TTL isn't 0, all callers of the limit hold
}

// step is one call. Instants are distinct, in µs, so that a world runs the same way each time.
type step struct {
	At       time.Duration
	Client   int
	Limit    int
	Key      int
	Verb     string
	N        int64
	With     int           // the other limiter of All and SettleAll
	Deadline time.Duration // of the caller's context, after At; 0: none; below 0: it has ended before the call
	Cancel   time.Duration // when the caller's context is cancelled, after At; 0: never
	Hold     time.Duration // how long a lease or a hold is held
	Other    bool          // by twice the limit, of With
	End      string        // of a hold
	Cost     int64         // of a hold. Those of one limit differ
}

// fault is a fault of a server, from an instant on.
type fault struct {
	At   time.Duration
	For  time.Duration
	Name string
	Node int // of a cluster
}

// lasting are the faults that last, and momentary those that don't.
var (
	lasting = []string{"silent", "mute", "refuse", "lost", "loading", "readonly", "noauth", "noperm", "unknown", "no module", "slow",
		"cut before", "cut after"}
	momentary = []string{"cut", "half-open", "restart", "failover", "move"}
)

// verbs are those of a kind of limiter. Allow is the most frequent.
func (l *limit) verbs() []string {
	switch {
	case l.TTL > 0:
		return []string{"Hold"}
	case l.Kind == "slots":
		return []string{"Lease", "Take", "Acquire", "PeekSlot"}
	case l.Lockout > 0:
		return []string{"Allow", "AllowN", "Peek", "Refund", "Settle", "Raise", "All", "SettleAll"}
	}
	all := []string{"Allow", "Allow", "Allow", "Allow", "AllowN", "AllowAtMost", "Peek", "Refund", "Settle", "Raise", "All", "SettleAll"}
	if l.Kind == "rate" {
		all = append(all, "Reserve", "Wait")
	}
	return all
}

func pick[T any](r *rand.Rand, all ...T) T { return all[r.IntN(len(all))] }

// generate makes a world.
func generate(seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 1))
	w := &world{Kind: pick(r, "single", "single", "cluster", "sentinel"), TLS: r.IntN(4) == 0, Script: r.IntN(3) == 0, Clients: 1 + r.IntN(2),
		Far: pick(r, 0, 200*time.Microsecond, time.Millisecond, 5*time.Millisecond, 20*time.Millisecond, 80*time.Millisecond)}
	for range 2 + r.IntN(3) {
		w.Limits = append(w.Limits, w.limit(r))
	}
	w.Rest = pick(r, 0, 10*time.Second)
	length := time.Duration(1+r.IntN(8)) * time.Second
	for i := range w.Limits {
		w.addSteps(r, i, length)
	}
	for range r.IntN(3) {
		f := fault{At: micros(r, length), Name: pick(r, append(lasting, momentary...)...), Node: r.IntN(3)}
		if slices.Contains(lasting, f.Name) {
			f.For = micros(r, pick(r, 100*time.Millisecond, time.Second, 5*time.Second))
		}
		w.Faults = append(w.Faults, f)
	}
	for w.Kind != "single" && r.IntN(2) == 0 {
		w.Faults = append(w.Faults, fault{At: micros(r, length), Name: "failover", Node: r.IntN(3)})
	}
	if !slices.ContainsFunc(w.Faults, func(f fault) bool { return f.Name == "move" }) { // which a copy that lags doesn't know of
		w.Lag = pick(r, 0, 0, time.Millisecond, 30*time.Millisecond, 300*time.Millisecond, 3*time.Second)
	}
	w.vary(rand.New(rand.NewPCG(seed, 2)), length)
	w.hold(rand.New(rand.NewPCG(seed, 3)), length)
	slices.SortFunc(w.Steps, func(a, b step) int { return cmp.Compare(a.At, b.At) })
	slices.SortFunc(w.Faults, func(a, b fault) int { return cmp.Compare(a.At, b.At) })
	return w
}

// vary adds other limits of a name, leases that outlive their ttl, a Close while calls are under way, and limiters that disturb
// others if they can: one whose time limit is below the round trip, and one connection fault for long and short limits.
func (w *world) vary(r *rand.Rand, length time.Duration) {
	others := r.IntN(3) == 0
	for i := range w.Steps {
		s := &w.Steps[i]
		if l := &w.Limits[s.Limit]; l.Kind == "slots" && r.IntN(2) == 0 {
			s.Hold = micros(r, min(3*l.Period, 20*time.Second))
		} else if slices.Contains([]string{"rate", "window", "quota"}, l.Kind) {
			s.Other = others && r.IntN(4) == 0
		}
	}
	if r.IntN(8) == 0 {
		w.CloseAt = micros(r, length)
	}
	switch r.IntN(8) {
	case 0:
		w.Far = pick(r, 20*time.Millisecond, 60*time.Millisecond)
		for i := range w.Limits {
			w.Limits[i].Timeout = 8 * w.Far
		}
		w.Limits[0].Timeout = w.Far / 2 // no reply comes in time
	case 1:
		w.TLS, w.Faults = true, []fault{{At: micros(r, time.Second), Name: "cut"}}
	case 2:
		w.Faults, w.Steps = []fault{{At: time.Second + micros(r, time.Second), Name: "half-open"}}, nil
		for i := range w.Limits {
			w.Limits[i].Timeout = []time.Duration{max(50*time.Millisecond, 8*w.Far), 2 * time.Second}[i%2]
			w.addSteps(r, i, 6*time.Second)
		}
	}
}

// hold makes all callers of some limits hold, and adds the costs. The limits hardly drain in the world's time.
func (w *world) hold(r *rand.Rand, length time.Duration) {
	for i := range w.Limits {
		if l := &w.Limits[i]; slices.Contains([]string{"rate", "window", "quota"}, l.Kind) && r.IntN(4) == 0 {
			l.Budget, l.Lockout, l.Denies, l.Units, l.Period = 0, 0, false, pick(r, int64(100), 3_000, 1_000_000), time.Hour
			l.TTL, l.Longest = pick(r, 400*time.Millisecond, 3*time.Second), pick(r, 0, 2*time.Second, time.Hour)
			w.Steps = slices.DeleteFunc(w.Steps, func(s step) bool { return s.Limit == i || s.both(w) && s.With == i })
			w.addSteps(r, i, length)
		}
	}
	for i := range w.Steps {
		if s := &w.Steps[i]; w.Limits[s.Limit].TTL > 0 {
			s.N, s.Cost, s.Other = 1+r.Int64N(max(w.Limits[s.Limit].Units/4, 1)), int64(i+1), false
			s.Hold = micros(r, pick(r, 100*time.Millisecond, 2*w.Limits[s.Limit].TTL))
			s.End = pick(r, "settle", "settle", "settle twice", "settle elsewhere", "close", "leave")
		}
	}
}

// micros returns a random instant before the end. Few instants are the same.
func micros(r *rand.Rand, end time.Duration) time.Duration {
	return time.Duration(r.Int64N(int64(end/time.Microsecond)))*time.Microsecond + time.Duration(1+r.IntN(900))
}

func (w *world) limit(r *rand.Rand) limit {
	l := limit{Kind: pick(r, "rate", "rate", "rate", "window", "window", "quota", "quota", "slots", "unlimited", "suspended"), Units: pick(r, int64(1), 4, 30, 1000),
		Period: pick(r, time.Second, 10*time.Second, time.Hour), Timeout: pick(r, 10*time.Millisecond, 50*time.Millisecond, 200*time.Millisecond,
			500*time.Millisecond, 2*time.Second)}
	l.Timeout = max(l.Timeout, 8*w.Far) // else it never works
	switch r.IntN(4) {
	case 0:
		l.Open = true
	case 1:
		l.Closed = true
	case 2:
		l.Local = true
	}
	l.Denies = r.IntN(3) == 0
	switch {
	case l.Kind == "rate" && r.IntN(4) == 0:
		l.Lockout = pick(r, 100*time.Millisecond, 3*time.Second)
	case l.Kind != "slots" && r.IntN(2) == 0: // of a limit that drains within a few times its hold, else nothing is taken ahead
		l.Budget, l.Units, l.Period = pick(r, int64(3), 10, 100), 1000, pick(r, time.Second, 4*time.Second)
	}
	return l
}

// addSteps adds the calls of a limiter: at a few keys, in a steady load of random calls.
func (w *world) addSteps(r *rand.Rand, i int, length time.Duration) {
	l := &w.Limits[i]
	every := pick(r, 2*time.Millisecond, 20*time.Millisecond, 200*time.Millisecond)
	if l.Kind == "slots" || l.Kind == "unlimited" || l.Kind == "suspended" {
		every = max(every, 20*time.Millisecond)
	}
	for at := micros(r, every); at < length; at += micros(r, 2*every) {
		s := step{At: at, Client: r.IntN(w.Clients), Limit: i, Key: r.IntN(3), Verb: pick(r, l.verbs()...), N: 1, With: r.IntN(len(w.Limits))}
		if l.Budget > 0 && r.IntN(10) > 0 {
			s.Key, s.Verb = 0, "Allow"
		}
		if r.IntN(100) == 0 { // until what is held has become old
			at += micros(r, 2*hold)
		}
		if s.Verb != "Allow" {
			s.N = 1 + r.Int64N(min(l.Units, 5))
		}
		switch r.IntN(12) {
		case 0:
			s.Deadline = pick(r, -time.Second, micros(r, 5*time.Millisecond), micros(r, time.Second))
		case 1:
			s.Cancel = micros(r, 300*time.Millisecond)
		}
		if s.Verb == "Wait" || s.Verb == "Acquire" {
			s.Deadline = cmp.Or(s.Deadline, micros(r, 2*time.Second))
		}
		s.Hold = micros(r, 2*l.Period/3)
		w.Steps = append(w.Steps, s)
	}
}

func (s step) String() string {
	return fmt.Sprintf("+%s client %d: %s %d of limiter %d, key %d, with %d, deadline %s, cancel %s", s.At, s.Client, s.Verb, s.N, s.Limit, s.Key,
		s.With, s.Deadline, s.Cancel)
}
