package resp_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/require"

	"gothrottle/commands/memory/resp"
	"gothrottle/script"
)

var (
	ctx      = context.Background()
	disabled = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled} // else go-redis holds a lock during I/O
)

// bubble runs f in frozen time. Afterwards the clients of go-redis that f has closed have a second to end.
func bubble(t *testing.T, f func(t *testing.T)) {
	runtime.GC() // go-redis keeps timers of earlier bubbles in a pool
	runtime.GC()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Second) })
		f(t)
	})
}

// network returns a network that is closed when the test ends.
func network(t *testing.T, o resp.Options) *resp.Network {
	n := resp.NewNetwork(o)
	t.Cleanup(n.Close)
	return n
}

func client(t *testing.T, s *resp.Server, o redis.Options) *redis.Client {
	o.Addr, o.Dialer, o.MaintNotificationsConfig, o.ContextTimeoutEnabled, o.MaxRetries = s.Addr, s.Dial, disabled, true, -1
	rdb := redis.NewClient(&o)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// take asks for a unit of 1,000 an hour, and returns how many are left.
func take(ctx context.Context, rdb redis.UniversalClient, key string) (left int64, err error) {
	reply, err := rdb.Do(ctx, "GO.QUOTA", key, 1000, "1h").Int64Slice()
	if err != nil {
		return 0, err
	}
	return reply[2], nil
}

// The end of a stall doesn't end a later one.
func TestStall_twice(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := network(t, resp.Options{}).Add("10.0.0.1:6379")
		rdb, began := client(t, s, redis.Options{ReadTimeout: -1}), time.Now()
		s.Stall(time.Second)
		time.Sleep(900 * time.Millisecond)
		s.Stall(time.Second)
		must(take(ctx, rdb, "k"))
		require.Equal(t, 1900*time.Millisecond, time.Since(began))
	})
}

// A client of go-redis sees of each fault, which programs in other languages set by DEBUG: the error of the call made meanwhile,
// how long it takes with a limit of a second, and how many of the three calls before, meanwhile and after it have taken a unit.
func TestFaults(t *testing.T) {
	for _, tls := range []bool{false, true} {
		for line, row := range map[string]struct {
			err   string
			took  time.Duration
			taken int64
		}{
			"FAULT NONE":          {"", 0, 3},
			"FAULT SILENT":        {"deadline|timeout", time.Second, 3}, // runs when the silence ends
			"STALL 300ms":         {"", 300 * time.Millisecond, 3},
			"FAULT MUTE":          {"deadline|timeout", time.Second, 3},
			"FAULT SLOW 10ms":     {"", 10 * time.Millisecond, 3},
			"FAULT FAR 10ms":      {"", 10 * time.Millisecond, 3},
			"FAULT ERROR LOADING": {"LOADING", 0, 2},
			"FAULT WRITES OOM it": {"OOM it", 0, 2},
			"FAULT NOMODULE":      {"unknown command 'GO.QUOTA'", 0, 2},
			"CUTBEFORE 1":         {"EOF", 0, 2},
			"CUTAFTER 1":          {"EOF", 0, 3},
			"CUT":                 {"EOF", 0, 2},
			"RESTART":             {"EOF", 0, 2},
			"HALFOPEN":            {"deadline|timeout", time.Second, 2},
			"":                    {"unexpected type", 0, 2}, // a reply, which DEBUG can't set
		} {
			bubble(t, func(t *testing.T) {
				s := network(t, resp.Options{TLS: tls, Debug: true}).Add("10.0.0.1:6379")
				control, rdb := client(t, s, redis.Options{PoolSize: 1}), client(t, s, redis.Options{})
				debug(t, control, "FAULT NONE")
				must(take(ctx, rdb, "k"))
				if line == "" {
					s.Change(func(f *resp.Faults) { f.Reply = func([]string) (any, bool) { return "hm", true } })
				} else {
					debug(t, control, line)
				}
				synctest.Wait()
				limited, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				began := time.Now()
				_, err := take(limited, rdb, "k")
				require.Equal(t, row.took, time.Since(began), line)
				require.Equal(t, row.err == "", err == nil, line)
				require.Regexp(t, row.err, fmt.Sprint(err), line)
				time.Sleep(time.Second)
				s.Change(func(f *resp.Faults) { *f = resp.Faults{} })
				time.Sleep(time.Second)
				left, err := take(ctx, rdb, "k")
				for err != nil { // a connection that was cut
					left, err = take(ctx, rdb, "k")
				}
				require.Equal(t, 1000-row.taken, left, line)
			})
		}
	}
}

// A connection is refused at once, or is lost until packets come through again.
func TestFaults_dial(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := network(t, resp.Options{}).Add("10.0.0.1:6379")
		for _, row := range []struct {
			f    resp.Faults
			took time.Duration
			err  string
		}{{resp.Faults{Refuse: true}, 0, "refused"}, {resp.Faults{Lost: true}, time.Minute, "deadline"}, {resp.Faults{Far: time.Second}, time.Second, ""}} {
			s.Change(func(f *resp.Faults) { *f = row.f })
			limited, cancel := context.WithTimeout(ctx, time.Minute)
			began := time.Now()
			c, err := s.Dial(limited, "tcp", s.Addr)
			cancel()
			require.Equal(t, row.took, time.Since(began))
			if row.err == "" {
				require.NoError(t, err)
				require.NoError(t, c.Close())
			} else {
				require.ErrorContains(t, err, row.err)
			}
		}
		_, err := s.Dial(ctx, "tcp", "10.0.0.2:6379")
		require.ErrorContains(t, err, "refused")
	})
}

// Slow is per command, far per reply: four calls at a time take 40 ms or 10 ms.
func TestFaults_slowAndFar(t *testing.T) {
	for _, row := range []struct {
		f    resp.Faults
		took time.Duration
	}{{resp.Faults{Slow: 10 * time.Millisecond}, 40 * time.Millisecond}, {resp.Faults{Far: 10 * time.Millisecond}, 10 * time.Millisecond}} {
		bubble(t, func(t *testing.T) {
			s := network(t, resp.Options{}).Add("10.0.0.1:6379")
			rdb := client(t, s, redis.Options{PoolSize: 4})
			four := func(f resp.Faults) (took time.Duration) {
				s.Change(func(now *resp.Faults) { *now = f })
				began, all := time.Now(), sync.WaitGroup{}
				for i := range 4 {
					all.Go(func() { must(take(ctx, rdb, fmt.Sprint(i))) })
				}
				all.Wait()
				return time.Since(began)
			}
			four(resp.Faults{Far: time.Millisecond}) // sets up all connections
			require.Equal(t, row.took, four(row.f))
		})
	}
}

// A restart forgets the script, and keeps the keys.
func TestScript(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := network(t, resp.Options{}).Add("10.0.0.1:6379")
		rdb := client(t, s, redis.Options{})
		gothrottle := redis.NewScript(script.Text)
		for _, want := range []int64{9, 8, 7} {
			require.Equal(t, want, must(gothrottle.Run(ctx, rdb, []string{"k"}, "GO.QUOTA", 10, "1h").Int64Slice())[2])
			require.NoError(t, gothrottle.EvalSha(ctx, rdb, []string{"k"}, "GO.QUOTA_RO", 10, "1h").Err())
			s.Restart()
			synctest.Wait()
			require.Error(t, rdb.Ping(ctx).Err())
			require.ErrorContains(t, gothrottle.EvalSha(ctx, rdb, []string{"k"}, "GO.QUOTA", 10, "1h").Err(), "NOSCRIPT")
		}
	})
}

// Clients of clusters wrap a command in a script, so that the call finds the key's node. Other scripts are refused.
func TestScript_oneCall(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := network(t, resp.Options{}).Add("10.0.0.1:6379")
		rdb, one := client(t, s, redis.Options{}), redis.NewScript("return redis.call('GO.QUOTA', KEYS[1], unpack(ARGV))")
		require.ErrorContains(t, one.EvalSha(ctx, rdb, []string{"k"}, 10, "1h").Err(), "NOSCRIPT")
		for _, want := range []int64{9, 8} {
			require.Equal(t, want, must(one.Run(ctx, rdb, []string{"k"}, 10, "1h").Int64Slice())[2])
		}
		s.Change(func(f *resp.Faults) { f.NoModule = true })
		require.ErrorContains(t, one.Run(ctx, rdb, []string{"k"}, 10, "1h").Err(), "unknown command 'GO.QUOTA'")
		require.ErrorContains(t, redis.NewScript("return 1").Run(ctx, rdb, []string{"k"}).Err(), "ERR ")
	})
}

// SCAN finds the keys that live, by a pattern.
func TestServer_scan(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := network(t, resp.Options{}).Add("10.0.0.1:6379")
		rdb := client(t, s, redis.Options{})
		for _, key := range []string{"a*b", "a/b", "axxb", "b"} {
			must(take(ctx, rdb, key))
		}
		for pattern, want := range map[string][]string{"": {"a*b", "a/b", "axxb", "b"}, "a*": {"a*b", "a/b", "axxb"}, "a?b": {"a*b", "a/b"}, `a\*b`: {"a*b"}, "a.b": {}} {
			keys, _, err := rdb.Scan(ctx, 0, pattern, 10).Result()
			require.NoError(t, err)
			require.Equal(t, want, keys, pattern)
		}
		time.Sleep(3 * time.Hour)
		keys, _, err := rdb.Scan(ctx, 0, "*", 10).Result()
		require.NoError(t, err)
		require.Empty(t, keys)
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A client without the password is refused.
func TestPassword(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := network(t, resp.Options{Password: "secret"}).Add("10.0.0.1:6379")
		for password, want := range map[string]string{"": "NOAUTH", "wrong": "WRONGPASS", "secret": ""} {
			_, err := take(ctx, client(t, s, redis.Options{Password: password}), "k")
			if want != "" {
				require.ErrorContains(t, err, want)
			} else {
				require.NoError(t, err)
			}
		}
	})
}

// Commands of a transaction run together; 20,000 commands go in one pipeline.
func TestPipelines(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := network(t, resp.Options{}).Add("10.0.0.1:6379")
		rdb := client(t, s, redis.Options{})
		replies, err := rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.Do(ctx, "GO.QUOTA", "k", 5, "1h", 3)
			p.Do(ctx, "GO.QUOTA", "k", 5, "1h", 3)
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, []any{int64(1), int64(5), int64(2), int64(3600), int64(3600)}, replies[1].(*redis.Cmd).Val())
		_, err = rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for range 20_000 {
				p.Do(ctx, "GO.QUOTA", "many", 100_000, "1h")
			}
			return nil
		})
		require.NoError(t, err)
		require.EqualValues(t, 79_999, must(rdb.Do(ctx, "GO.QUOTA", "many", 100_000, "1h").Int64Slice())[2])
	})
}

// A cluster sends a client to the master of a key, also after a slot has moved, and after a copy that lags is promoted.
func TestCluster(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := network(t, resp.Options{})
		c := n.NewCluster("10.0.0.1:6379", "10.0.0.2:6379", "10.0.0.3:6379")
		copy := c.Masters()[0].AddCopy("10.0.0.4:6379", 100*time.Millisecond)
		rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"10.0.0.2:6379"}, Dialer: n.Dial, MaintNotificationsConfig: disabled})
		defer rdb.Close()
		five := func() {
			for range 5 {
				must(take(ctx, rdb, "moves"))
				time.Sleep(30 * time.Millisecond)
			}
		}
		must(take(ctx, rdb, "{moves}rests")) // no later call replicates it
		five()
		require.Nil(t, c.Masters()[0].Memory().Get("moves"))
		c.Move(resp.Slot("moves"), c.Masters()[0])
		five()
		err := rdb.Do(ctx, "GO.ALL", "a", "QUOTA", 5, "1h", "KEY", "b", "QUOTA", 5, "1h").Err()
		require.ErrorContains(t, err, "CROSSSLOT")
		require.Regexp(t, `10\.0\.0\.4:6379@0 slave \w+ 0 0 1 connected\n`, must(rdb.ClusterNodes(ctx).Result()))
		require.ErrorContains(t, client(t, copy, redis.Options{}).Do(ctx, "GO.QUOTA", "moves", 5, "1h").Err(), "MOVED")
		c.Promote(copy) // the units of the last 100 ms are lost
		time.Sleep(time.Minute)
		require.EqualValues(t, 1000-5-2-1, must(take(ctx, rdb, "moves")))
		require.EqualValues(t, 1000-2, must(take(ctx, rdb, "{moves}rests")))
		require.Equal(t, copy, c.Masters()[0])
	})
}

// A client of Sentinels asks for the master, and hears of a new one.
func TestSentinel(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := network(t, resp.Options{})
		master := n.Add("10.0.0.1:6379")
		copy := master.AddCopy("10.0.0.2:6379", 0)
		w := n.NewSentinel("mymaster", master, "10.0.0.3:26379", "10.0.0.4:26379", "10.0.0.5:26379")
		rdb := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "mymaster", SentinelAddrs: []string{"10.0.0.3:26379"}, Dialer: n.Dial})
		defer rdb.Close()
		require.EqualValues(t, 999, must(take(ctx, rdb, "k")))
		time.Sleep(time.Second)
		require.ErrorContains(t, client(t, copy, redis.Options{}).Do(ctx, "GO.QUOTA", "k", 5, "1h").Err(), "READONLY")
		w.Promote(copy)
		require.Equal(t, copy, w.Master())
		time.Sleep(time.Millisecond)
		require.EqualValues(t, 998, must(take(ctx, rdb, "k")))
		require.EqualValues(t, 997, must(copy.Do("GO.QUOTA", "k", "1000", "1h")).([]any)[2])
		require.NotNil(t, master.Memory().Get("k"))
	})
}

// A server that answers nothing is an error, not a test that hangs.
func TestNetwork_unknownCommands(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := network(t, resp.Options{}).Add("10.0.0.1:6379")
		rdb := client(t, s, redis.Options{Protocol: 2})
		for _, words := range [][]any{{"GET", "k"}, {"SELECT", 1}, {"EVAL", "return 1", 0}, {"EVAL", script.Text, 9, "k", "GO.QUOTA"},
			{"EVAL", script.Text, 2, "a", "b", "GO.QUOTA", 5, "1h"}, {"EVAL", script.Text, 1, "k", "GET"}, {"EVAL", script.Text, -1},
			{"CLUSTER", "SLOTS"}, {"SENTINEL", "MASTERS"}, {"EXEC"}} {
			var reply redis.Error
			require.True(t, errors.As(rdb.Do(ctx, words...).Err(), &reply), words)
		}
	})
}
