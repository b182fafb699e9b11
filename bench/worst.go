package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A worstCase is a call that meets a state, or brings words, of the greatest size.
type worstCase struct {
	name string

	// The state: fills ops of fill (see compile), then the commands of setup, then a
	// wait. hotKey has at least entries members after that.
	fill    string
	fills   int64
	setup   [][]string
	wait    time.Duration
	entries int64

	reset []string // a command before each call, not measured; nil for none
	call  []string // the measured command
	calls int
	first int64 // the first integer of each reply
	fails bool  // the reply is an error
}

// Sizes of the worst cases.
const (
	lapsedLeases  = 100_000
	windowEntries = 200_000
	releasedIDs   = 1024
	maxIDBytes    = 512
	maxClauses    = 32
	longBytes     = 1 << 20 // key names and a foreign string

	// A denied GO.LEASE removes up to 128 lapsed leases. So many calls leave lapsed
	// leases behind.
	leaseCalls = 500

	// Calls with short words are pipelined, so that their cost is not that of waking the
	// server up.
	batchBytes = 1 << 20
)

// worstCases returns the worst cases. The rows before a worst case are the same command in
// a small state, or a command of the server with the same words.
func worstCases() []*worstCase {
	ids := longWords("id:", releasedIDs, maxIDBytes)
	var leases [][]string
	members := []string{"ZADD", hotKey}
	for _, id := range ids {
		leases = append(leases, []string{"GO.LEASE", hotKey, fmt.Sprint(releasedIDs), "3600", id})
		members = append(members, "1", id)
	}
	restore := []string{"COPY", hotKey, "copy", "REPLACE"}
	longKeys := longWords("key:", maxClauses, longBytes)
	mset := []string{"MSET"}
	for _, key := range longKeys {
		mset = append(mset, key, "1")
	}
	heldForAnHour := []string{"GO.LEASE", hotKey, "10000000", "3600", "long"}
	deniedLease := []string{"GO.LEASE", hotKey, "1", "60", "other"}
	exact := fmt.Sprintf("GO.WINDOW {hot} %d 3600 1 EXACT", windowEntries)
	foreign := []string{"SET", hotKey, strings.Repeat("1", longBytes)}

	return []*worstCase{
		{name: "PING", call: []string{"PING"}, calls: 500},
		{name: "GO.LEASE denied, 1 lease", setup: [][]string{heldForAnHour},
			call: deniedLease, calls: leaseCalls, first: 1},
		{name: "GO.LEASE denied, 100,000 lapsed leases", fill: "GO.LEASE {hot} 10000000 2000 {id} MS", fills: lapsedLeases,
			setup: [][]string{heldForAnHour}, wait: 2100 * time.Millisecond, entries: lapsedLeases,
			call: deniedLease, calls: leaseCalls, first: 1},
		{name: "GO.WINDOW EXACT denied, 100 entries", fill: "GO.WINDOW {hot} 100 3600 1 EXACT", fills: 100, entries: 100,
			call: []string{"GO.WINDOW", hotKey, "100", "3600", "50", "EXACT"}, calls: 500, first: 1},
		{name: "GO.WINDOW EXACT denied, 200,000 entries", fill: exact, fills: windowEntries, entries: windowEntries,
			call: []string{"GO.WINDOW", hotKey, "200000", "3600", "100000", "EXACT"}, calls: 500, first: 1},
		{name: "GO.WINDOW EXACT refund of all, 200,000 entries", fill: exact, fills: windowEntries, entries: windowEntries,
			reset: restore, call: []string{"GO.WINDOW", "copy", "200000", "3600", "-200000", "EXACT"}, calls: 7},
		{name: "ZREM, 1024 members of 512 bytes", setup: [][]string{members}, entries: releasedIDs,
			reset: restore, call: append([]string{"ZREM", "copy"}, ids...), calls: 50, first: releasedIDs},
		{name: "GO.RELEASE, 1024 ids of 512 bytes", setup: leases, entries: releasedIDs,
			reset: restore, call: append([]string{"GO.RELEASE", "copy"}, ids...), calls: 50, first: releasedIDs},
		{name: "GO.ALL, 32 cells of one key", call: append([]string{"GO.ALL", hotKey}, strings.Fields(strings.Repeat("THROTTLE "+rate+" ", maxClauses))...), calls: 200},
		{name: "GO.ALL, 32 keys of 13 bytes", call: allOf(longWords("key:", maxClauses, len(hotKey))), calls: 200},
		{name: "EXISTS, 32 keys of 1 MB", setup: [][]string{mset}, call: append([]string{"EXISTS"}, longKeys...), calls: 7, first: maxClauses},
		{name: "GO.ALL, 32 keys of 1 MB", call: allOf(longKeys), calls: 7},
		{name: "STRLEN, string of 1 MB", setup: [][]string{foreign}, call: []string{"STRLEN", hotKey}, calls: 500, first: longBytes},
		{name: "GO.QUOTA_RO, foreign string of 1 MB", setup: [][]string{foreign},
			call: []string{"GO.QUOTA_RO", hotKey, "1000000", "60"}, calls: 500, fails: true},
	}
}

// longWords returns n words of size bytes that differ in their last four bytes only, which
// makes comparisons slow.
func longWords(prefix string, n, size int) []string {
	var words []string
	for i := range n {
		word := prefix + strings.Repeat("0", size-len(prefix)-4)
		words = append(words, fmt.Sprintf("%s%04d", word, i))
	}
	return words
}

// allOf returns a GO.ALL with one clause for each key.
func allOf(keys []string) []string {
	words := []string{"GO.ALL"}
	for i, key := range keys {
		if i > 0 {
			words = append(words, "KEY")
		}
		words = append(append(words, key, "THROTTLE"), strings.Fields(rate)...)
	}
	return words
}

// measureWorst measures the worst cases.
func (b *bench) measureWorst(r *results) error {
	name := func(w *worstCase) string { return w.name }
	return measureAll(b, r, "worst cases", b.rounds, r.worst, name, func(w *worstCase, on *figures) error {
		cost, err := b.measureWorstCase(on.product, w)
		if err == nil {
			on.worst[w.name] = append(on.worst[w.name], cost)
		}
		return err
	})
}

// measureWorstCase returns the server's processor time per call in µs.
func (b *bench) measureWorstCase(p product, w *worstCase) (float64, error) {
	c := &contender{name: w.name, module: b.module, keys: 1}
	st, err := b.stage(p, c, 1, b.cpus)
	if err != nil {
		return 0, err
	}
	defer st.leave()
	if err := w.prepare(st); err != nil {
		return 0, err
	}
	hangUp(st.conns)
	wire := request(w.call...)
	if w.reset == nil {
		total, err := st.costOf(func() error { return w.send(st.control, wire) })
		return total / float64(w.calls), err
	}
	var costs []float64
	for range w.calls {
		if _, err := st.control.call(request(w.reset...)); err != nil {
			return 0, err
		}
		cost, err := st.costOf(func() error { return w.check(st.control.call(wire)) })
		if err != nil {
			return 0, err
		}
		costs = append(costs, cost)
	}
	return spreadOf(costs).median, nil
}

// send sends all calls of a case, as many at once as fit into batchBytes, and checks the
// replies.
func (w *worstCase) send(c *conn, wire []byte) error {
	batch := max(1, batchBytes/len(wire))
	for left := w.calls; left > 0; left -= batch {
		n := min(batch, left)
		if _, err := c.Write(bytes.Repeat(wire, n)); err != nil {
			return err
		}
		for range n {
			if err := w.check(skipReply(c.r, make([]int64, 0, 8))); err != nil {
				return err
			}
		}
	}
	return nil
}

// costOf returns the server's processor time for some calls in µs. It subtracts the cost of
// asking for the processor time.
func (st *stage) costOf(calls func() error) (float64, error) {
	var at [3]float64
	for i := range at {
		if i == 2 {
			if err := calls(); err != nil {
				return 0, err
			}
		}
		var err error
		if at[i], err = st.cpu(); err != nil {
			return 0, err
		}
	}
	return (at[2] - at[1]) - (at[1] - at[0]), nil
}

// prepare creates the state of a worst case. Leases that lapse too early, or calls that
// share an entry, are errDisturbed.
func (w *worstCase) prepare(st *stage) error {
	if w.fills > 0 {
		t, err := st.c.traffic(st.o, w.fill, "", 1, st.o.period)
		if err == nil {
			_, err = t.fill(st.conns, w.fills)
		}
		if err != nil {
			return fmt.Errorf("warming up: %w", err)
		}
	}
	for _, words := range w.setup {
		if _, err := st.control.call(request(words...)); err != nil {
			return fmt.Errorf("warming up: %w", err)
		}
	}
	if w.entries > 0 {
		ints, err := st.control.call(request("ZCARD", hotKey))
		if err != nil {
			return err
		}
		if ints[0] < w.entries*9/10 {
			return fmt.Errorf("%d entries instead of %d: %w", ints[0], w.entries, errDisturbed)
		}
	}
	time.Sleep(w.wait)
	return nil
}

// check returns an error if a reply is not the expected one.
func (w *worstCase) check(ints []int64, err error) error {
	var reply errReply
	switch {
	case w.fails && errors.As(err, &reply):
		return nil
	case w.fails && err == nil:
		return errors.New("an error reply was expected")
	case err != nil:
		return err
	case w.call[0] == "PING":
		return nil
	case !slices.Equal(ints[:min(1, len(ints))], []int64{w.first}):
		return fmt.Errorf("the reply begins with %v instead of %d", ints, w.first)
	}
	return nil
}
