package commands_test

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"gothrottle/funnel"
	"gothrottle/tests/corpus"
	servers "gothrottle/tests/server"
)

// The calls of TestAll_random on a real server, whose clock the test moves. Package memory takes part in nothing: server and
// models share no code but the parameters' types. GOTHROTTLE_CALLS is the number of calls, GOTHROTTLE_SEED the first seed.
func TestServer_all(t *testing.T) {
	servers.Needed(t, "test-server")
	calls, seed := number("GOTHROTTLE_CALLS", 30_000), uint64(number("GOTHROTTLE_SEED", 1))
	s := newServerTwin(t)
	tally := allTally{outcomes: map[bool]int{}}
	for ; calls > 0; seed++ {
		r := rand.New(rand.NewPCG(seed, 8))
		m := &allModel{}
		s.c.FlushAll(context.Background())
		for n := 0; n < 300 && calls > 0; {
			batch := make([]allCall, 1+r.IntN(8))
			for i := range batch {
				batch[i] = randomAllCall(r)
			}
			now, replies := s.at(randomStep(r), batch)
			for i := range batch {
				want, limited := batch[i].reply(m, now)
				if replies[i] != want {
					t.Fatalf("seed %d, call %d: %s\n%s, the models say\n%s", seed, n+i, batch[i].line, replies[i], want)
				}
				tally.count(&batch[i], limited, m.locked(now))
			}
			n, calls = n+len(batch), calls-len(batch)
		}
	}
	tally.check(t)
	t.Logf("%d limited, %d admitted, %d with FORCE, %d limited while a cell was locked", tally.outcomes[true], tally.outcomes[false], tally.forced, tally.locked)
}

func number(variable string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		return n
	}
	return otherwise
}

// serverTwin is a real server and its clock.
type serverTwin struct {
	t     *testing.T
	clock *servers.Clock
	c     *redis.Client
}

func newServerTwin(t *testing.T) *serverTwin {
	clock, err := servers.NewClock(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { clock.Close() })
	c := servers.New(t, servers.Options{Clock: clock}).Client()
	t.Cleanup(func() { c.Close() })
	clock.Frozen, clock.Wall = true, corpus.Epoch
	if strings.Contains(c.Info(context.Background(), "server").Val(), "valkey_version:") { // its clock runs, but not in a transaction
		clock.Frozen, clock.Wall = false, corpus.Epoch-time.Now().UnixMicro()
	}
	return &serverTwin{t, clock, c}
}

// at makes calls at one instant, a step later than those before, and returns the instant. The calls are a transaction, which
// reads the module's clock at both ends.
func (s *serverTwin) at(step funnel.Micros, batch []allCall) (now funnel.Micros, replies []string) {
	s.clock.Wall += int64(step)
	if err := s.clock.Write(); err != nil {
		s.t.Fatal(err)
	}
	p := s.c.TxPipeline()
	begin := askClock(p)
	var cmds []*redis.Cmd
	for _, c := range batch {
		if c.policies != "" {
			p.ConfigSet(context.Background(), "gothrottle.policies", c.policies)
		}
		var words []any
		for _, word := range strings.Fields(c.line) {
			words = append(words, word)
		}
		cmds = append(cmds, p.Do(context.Background(), words...))
	}
	end := askClock(p)
	_, _ = p.Exec(context.Background())
	if begin.Err() != nil || begin.Val() != end.Val() {
		s.t.Fatalf("the clock: %v, then %v", begin, end)
	}
	for _, c := range cmds {
		v, err := c.Result()
		if err != nil {
			v = err
		}
		replies = append(replies, corpus.ReplyText(v))
	}
	return readClock(begin.Val()), replies
}

const century = 3_153_600_000 // seconds

// askClock reads the module's clock by a quota that begins now.
func askClock(p redis.Pipeliner) *redis.StringCmd {
	p.Do(context.Background(), "DEL", "clock")
	p.Do(context.Background(), "GO.QUOTA", "clock", 1, century)
	return p.Get(context.Background(), "clock")
}

func readClock(quota string) funnel.Micros {
	_, end, _ := strings.Cut(quota, "@")
	n, _ := strconv.ParseInt(end, 10, 64)
	return funnel.Micros(n/1000 - century*1_000_000)
}
