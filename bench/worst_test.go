package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"gothrottle/tests/server"
)

// A worst case is a call that meets a state, or brings words, of the greatest size.
type worst struct {
	name    string
	fill    string // an op that comes first, so many times
	fills   int
	setup   string // commands with " ; " between them that come then
	wait    time.Duration
	restore bool // the call changes the state: it works on a copy, each time
	call    string
	calls   int
	first   int64 // the first integer of the reply, or one of these
}

const text, failure = -2, -1

func (w worst) String() string { return "row=" + w.name }

// words returns n words of size bytes that differ in their last four bytes only, which makes comparisons slow, each after a text.
func words(before, prefix string, n, size int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s%s%s%04d", before, prefix, strings.Repeat("0", size-len(prefix)-4), i)
	}
	return b.String()
}

// worstCases returns the worst cases. A row before one is the same command in a small state, or a command of the server with
// the same words.
func worstCases() []worst {
	const clause, long, exact = " THROTTLE " + rate, "GO.LEASE hot 10000000 3600 long", "GO.WINDOW hot 200000 3600 "
	ids, foreign := words(" ", "id:", 1024, 512), "SET hot "+strings.Repeat("1", 1<<20)
	all := func(size int) string {
		return "GO.ALL" + strings.TrimPrefix(words(clause+" KEY ", "key:", 32, size), clause+" KEY") + clause
	}
	return []worst{
		{name: "PING", call: "PING", calls: 500, first: text},
		{name: "GO.LEASE denied, 1 lease", setup: long, call: "GO.LEASE hot 1 60 other", calls: 500, first: 1},
		{name: "GO.LEASE denied, 100,000 lapsed leases", fill: "GO.LEASE hot 10000000 5000 {id} MS", fills: keys, setup: long,
			wait: 5100 * time.Millisecond, call: "GO.LEASE hot 1 60 other", calls: 500, first: 1},
		{name: "GO.WINDOW EXACT denied, 100 entries", fill: "GO.WINDOW hot 100 3600 1 EXACT", fills: 100,
			call: "GO.WINDOW hot 100 3600 50 EXACT", calls: 500, first: 1},
		{name: "GO.WINDOW EXACT denied, 200,000 entries", fill: exact + "1 EXACT", fills: 200_000, call: exact + "100000 EXACT", calls: 500, first: 1},
		{name: "GO.WINDOW EXACT refund of all, 200,000 entries", fill: exact + "1 EXACT", fills: 200_000, restore: true,
			call: "GO.WINDOW copy 200000 3600 -200000 EXACT", calls: 7},
		{name: "ZREM, 1024 members of 512 bytes", setup: "ZADD hot" + words(" 1 ", "id:", 1024, 512), restore: true, call: "ZREM copy" + ids, calls: 50, first: 1024},
		{name: "GO.RELEASE, 1024 ids of 512 bytes", setup: words(" ; GO.LEASE hot 1024 3600 ", "id:", 1024, 512)[3:], restore: true,
			call: "GO.RELEASE copy" + ids, calls: 50, first: 1024},
		{name: "GO.ALL, 32 cells of one key", call: "GO.ALL hot" + strings.Repeat(clause, 32), calls: 200},
		{name: "GO.ALL, 32 keys of 13 bytes", call: all(13), calls: 200},
		{name: "EXISTS, 32 keys of 1 MB", setup: "MSET " + words(" 1 ", "key:", 32, 1<<20)[3:] + " 1", call: "EXISTS" + words(" ", "key:", 32, 1<<20), calls: 7, first: 32},
		{name: "GO.ALL, 32 keys of 1 MB", call: all(1 << 20), calls: 7},
		{name: "STRLEN, string of 1 MB", setup: foreign, call: "STRLEN hot", calls: 500, first: 1 << 20},
		{name: "GO.QUOTA_RO, foreign string of 1 MB", setup: foreign, call: "GO.QUOTA_RO hot 1000000 60", calls: 500, first: failure},
	}
}

// BenchmarkWorst measures processor time per call.
func BenchmarkWorst(b *testing.B) {
	each(b, worstCases(), func(b *testing.B, program string, w worst) map[string]float64 {
		// Valkey frees the old copy in another thread, whose time would count for the call.
		s := open(b, program, row{call: "GO."}, 1, server.Options{Args: []string{"--lazyfree-lazy-server-del", "no"}})
		s.visit(w.fill, 1, w.fills)
		if n := s.ZCard(ctx, "hot").Val(); int(n) < w.fills*9/10 {
			b.Fatalf("%d entries instead of %d: is this machine busy?", n, w.fills)
		}
		s.visit(w.setup, 1, min(len(w.setup), 1))
		time.Sleep(w.wait)
		total, batch := 0.0, w.calls
		if w.restore {
			batch = 1
		}
		for range w.calls / batch {
			if w.restore {
				s.no(s.Copy(ctx, "hot", "copy", 0, true).Err())
			}
			start := s.cpu()
			middle := s.cpu() // the cost of asking
			replies, _ := send(s, w.call, 0, batch, 1, time.Now())
			total += s.cpu() - middle - (middle - start)
			for _, r := range replies {
				value, err := r.(*redis.Cmd).Result()
				if list, ok := value.([]any); ok {
					value = list[0]
				}
				if (err != nil) != (w.first == failure) || w.first >= 0 && value != w.first {
					b.Fatalf("%.60v replies %v, %v", r.Args(), value, err)
				}
			}
		}
		return map[string]float64{"cpu-ns/op": total / float64(w.calls)}
	})
}
