package main

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"gothrottle/tests/server"
	"gothrottle/throttle"
)

// BenchmarkHolds is 50 callers who hold an estimate and settle its cost, as the published workload of a budget service does: each
// in a budget of its own, or all in one. p99 is of the calls of Hold alone.
func BenchmarkHolds(b *testing.B) {
	each(b, []row{{name: "own budgets", call: "GO."}, {name: "a shared budget", call: "GO."}}, func(b *testing.B, program string, r row) map[string]float64 {
		s := open(b, program, r, 1, server.Options{})
		client, err := throttle.New(s.Client, throttle.Timeout(10*time.Second))
		s.no(err)
		defer client.Close()
		tokens, key := client.Quota("tokens", 1e12, throttle.Month), func(caller int) string { return "all" }
		if r.name == "own budgets" {
			key = func(caller int) string { return fmt.Sprint(caller) }
		}
		holding(b, tokens, key, keys/2000)
		began := time.Now()
		took := holding(b, tokens, key, keys/200)
		perSecond, n := float64(len(took))/time.Since(began).Seconds(), len(took)
		slices.Sort(took)
		return map[string]float64{"holds/s": perSecond, "p50-ns": float64(took[n/2]), "p99-ns": float64(took[n*99/100])}
	})
}

// holding lets 50 callers hold and settle, each so many times, and returns how long each Hold took.
func holding(b *testing.B, tokens throttle.Window, key func(caller int) string, times int) (took []time.Duration) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for caller := range 50 {
		all.Go(func() {
			var own []time.Duration
			for range times {
				began := time.Now()
				h, err := tokens.Hold(ctx, key(caller), 1000)
				ended := time.Now()
				own = append(own, ended.Sub(began))
				if err == nil {
					err = h.Settle(ctx, 900)
				}
				if err != nil {
					b.Errorf("a call failed: %v", err)
					return
				}
			}
			mu.Lock()
			defer mu.Unlock()
			took = append(took, own...)
		})
	}
	all.Wait()
	return took
}
