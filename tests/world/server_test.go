package world

import (
	"context"
	"os"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"

	"gothrottle/funnel"
	"gothrottle/tests/corpus"
	servers "gothrottle/tests/server"
)

// Random calls on a real server, whose clock the test moves. Package memory takes part in nothing: server and models share no
// code but the parameters' types. GOTHROTTLE_CALLS is the number of calls, GOTHROTTLE_SEED the first seed.
func TestServer_all(t *testing.T) {
	servers.Needed(t, "test-server")
	Compare(t, newServerTwin(t), number("GOTHROTTLE_CALLS", 30_000), uint64(number("GOTHROTTLE_SEED", 1)))
}

func number(variable string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		return n
	}
	return otherwise
}

// serverTwin is a real server and its clock.
type serverTwin struct {
	clock *servers.Clock
	c     *redis.Client
}

func newServerTwin(t *testing.T) *serverTwin {
	clock := servers.FrozenClock(t, corpus.Epoch)
	c := servers.New(t, servers.Options{Clock: clock}).Client()
	t.Cleanup(func() { c.Close() })
	return &serverTwin{clock, c}
}

func (s *serverTwin) Empty() { s.c.FlushAll(context.Background()) }

func (s *serverTwin) At(step funnel.Micros, batch []Made) (now funnel.Micros, replies []string) {
	s.clock.Set(s.clock.Wall + int64(step))
	p := s.c.Pipeline()
	var cmds []*redis.Cmd
	for _, c := range batch {
		if c.Policies != "" {
			p.ConfigSet(context.Background(), "gothrottle.policies", c.Policies)
		}
		cmds = append(cmds, p.Do(context.Background(), corpus.Args(c.Words)...))
	}
	_, _ = p.Exec(context.Background())
	for _, c := range cmds {
		v, err := c.Result()
		if err != nil {
			v = err
		}
		replies = append(replies, corpus.ReplyText(v))
	}
	return funnel.Micros(s.clock.Wall), replies
}
