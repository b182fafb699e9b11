package throttle_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"gothrottle/throttle"
)

// asked is what a caller wants: a unit, or to give one back. The output is whether it got one.
type asked struct{ refund bool }

// linearQuota is a quota that ends long after the test.
type linearQuota struct {
	used int64
	full bool // once
}

// linearClients is how many clients there are; half of the goroutines share one.
const linearClients = 2

// quotaModel is what the client promises. A call is admitted only if there is room. A denial is true now or, if denials are
// remembered, was true once; with budgets, units that clients have taken in advance may be missing.
func quotaModel(limit, taken int64, remembers bool) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return linearQuota{} },
		Step: func(state, input, output any) (bool, any) {
			s := state.(linearQuota)
			switch got := output.(bool); {
			case input.(asked).refund:
				ok := got == (s.used > 0) || taken > 0 // the server counts those as used
				if got {
					s.used--
				}
				return ok, s
			case got:
				s.used++
				ok := s.used <= limit
				s.full = s.full || s.used == limit
				return ok, s
			}
			return s.used+taken >= limit || remembers && s.full, s
		},
	}
}

// Concurrent calls of two clients, merged into batches, with denials that are remembered, and with budgets, reply as if they
// came one after the other, within what each option promises.
func TestServer_linearizable(t *testing.T) {
	s, rounds := startServer(t), 300
	if testing.Short() {
		rounds = 30
	}
	const units = 4
	for name, mode := range map[string]struct {
		option    throttle.Option
		taken     int64
		remembers bool
	}{
		"plain":   {option: throttle.Coalesce(false)},
		"merged":  {},
		"denials": {option: throttle.DenyCache(true), remembers: true},
		"budgets": {option: throttle.Budget(units, 24*time.Hour), taken: linearClients * units},
	} {
		t.Run(name, func(t *testing.T) {
			var clients [linearClients]*throttle.Client
			for i := range clients {
				clients[i] = newReal(t, goRedis(t, s.Addr), throttle.Options{KeyPrefix: name}, throttle.Timeout(patient), mode.option)
			}
			for seed := range uint64(rounds) {
				r := rand.New(rand.NewPCG(seed, 5))
				limit := 1 + r.Int64N(40)
				history := linearRound(t, r, func(id int) *throttle.Quota {
					return clients[id%linearClients].Quota(fmt.Sprint(limit), limit, 24*time.Hour)
				}, fmt.Sprint(seed))
				if porcupine.CheckOperationsTimeout(quotaModel(limit, mode.taken, mode.remembers), history, time.Minute) != porcupine.Ok {
					t.Fatalf("seed %d, limit %d: no order of the calls explains the replies: %+v", seed, limit, history)
				}
			}
		})
	}
}

// linearRound makes the calls of eight goroutines, one in eight of them a refund.
func linearRound(t *testing.T, r *rand.Rand, limiter func(id int) *throttle.Quota, key string) (all []porcupine.Operation) {
	var mu sync.Mutex
	var wait sync.WaitGroup
	began := time.Now()
	for id := range 8 {
		var calls [12]asked
		for i := range calls {
			calls[i].refund = r.IntN(8) == 0
		}
		l := limiter(id)
		wait.Go(func() {
			for _, c := range calls {
				o := porcupine.Operation{ClientId: id, Input: c, Call: time.Since(began).Nanoseconds()}
				if c.refund {
					got, err := l.Refund(background, key, 1)
					o.Output = got.Granted < 0
					check(t, err)
				} else {
					got, err := l.Allow(background, key)
					o.Output = got.Allowed
					check(t, err)
				}
				o.Return = time.Since(began).Nanoseconds()
				mu.Lock()
				all = append(all, o)
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	return all
}

func check(t *testing.T, err error) {
	if err != nil {
		t.Error(err)
	}
}
