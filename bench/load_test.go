package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

var ctx = context.Background()

// fill returns a word of a call with its blanks filled. {n}, and {key}, which has it, are 12 digits that differ from key to key.
// {phase} is 0 to 14: a limiter's expiry moves every 15 calls, so the keys are spread over these. {id} is unique.
func fill(word string, n, id int, now time.Time) string {
	before, rest, _ := strings.Cut(word, "{")
	switch blank, after, _ := strings.Cut(rest, "}"); blank {
	case "n":
		return fmt.Sprintf("%s%012d%s", before, n, after)
	case "key":
		return fmt.Sprintf("k%012d", n)
	case "phase":
		return strconv.Itoa(n % 15)
	case "id":
		return fmt.Sprintf("%016d", id)
	case "now":
		return strconv.FormatInt(now.UnixMicro(), 10)
	case "old": // a period ago
		return strconv.FormatInt(now.Add(-period).UnixMicro(), 10)
	}
	return word
}

// send sends n ops together, the first of which is number from, and returns the replies. The keys are visited one after the
// other, in a mixed order.
func send(to interface{ Pipeline() redis.Pipeliner }, call string, from, n, keys int, now time.Time) ([]redis.Cmder, error) {
	pipe := to.Pipeline()
	for op := from; op < from+n; op++ {
		for command := range strings.SplitSeq(call, " ; ") {
			var words []any
			for word := range strings.FieldsSeq(command) {
				words = append(words, fill(word, op*7919%keys, op, now))
			}
			pipe.Do(ctx, words...)
		}
	}
	replies, err := pipe.Exec(ctx)
	if errors.Is(err, redis.Nil) {
		err = nil
	}
	return replies, err
}

// visit sends n ops, 50 at a time.
func (s *stage) visit(call string, keys, n int) {
	for at := 0; at < n; at += 50 {
		_, err := send(s, call, at, min(50, n-at), keys, time.Now())
		s.no(err)
	}
}

// play sends batches of ops at the row's rate for a time d, over four connections. A batch is due at its instant, whatever became
// of those before: an open loop. It returns the ops.
func (s *stage) play(d time.Duration) (ops int) {
	const batch, connections = 32, 4
	var next atomic.Int64
	failed, start := make(chan error, connections), time.Now()
	for range connections {
		go func() {
			conn := s.Conn()
			defer conn.Close()
			var err error
			for err == nil {
				i := int(next.Add(1)) - 1
				due := start.Add(time.Duration(float64(i*batch) / s.rate * 1e9))
				if due.Sub(start) >= d {
					break
				}
				if wait := time.Until(due); wait > 0 {
					_ = syscall.Nanosleep(&syscall.Timespec{Nsec: int64(wait)}, nil) // time.Sleep wakes up to 1 ms later
				}
				_, err = send(conn, s.call, i*batch, batch, s.keys, due)
			}
			failed <- err
		}()
	}
	for range connections {
		s.no(<-failed)
	}
	return (int(next.Load()) - connections) * batch
}

var perSecond = regexp.MustCompile(`([0-9.]+) requests per second`)

// hammer lets redis-benchmark send n calls for random keys over 50 connections. It returns the calls per second.
func (s *stage) hammer(n int, before ...string) float64 {
	words := append(before, "redis-benchmark", "-p", s.Port, "-c", "50", "-P", fmt.Sprint(32*s.times), "-n", fmt.Sprint(n),
		"-r", fmt.Sprint(s.keys), "-q")
	call := strings.NewReplacer("{n}", "__rand_int__", "{key}", "k__rand_int__").Replace(s.call)
	words = append(words, strings.Fields(call)...)
	out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	found := perSecond.FindAllSubmatch(out, -1)
	if err != nil || found == nil {
		s.b.Fatalf("redis-benchmark: %v: %s", err, out)
	}
	rate, err := strconv.ParseFloat(string(found[len(found)-1][1]), 64)
	s.no(err)
	return rate
}
