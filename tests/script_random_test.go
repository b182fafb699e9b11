package tests

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"gothrottle/tests/corpus"
	servers "gothrottle/tests/server"
)

// picker makes random calls.
type picker struct{ *rand.Rand }

func (p picker) of(words ...string) string { return words[p.IntN(len(words))] }

// maybe returns one of the words, mostly "".
func (p picker) maybe(words ...string) string {
	if p.IntN(3) > 0 {
		return ""
	}
	return " " + p.of(words...)
}

func (p picker) period() string {
	return p.of("60", "1", "5s", "250ms", "1m", "1h", "1d", "7", "90d", "200d", "3600", "1000", strconv.Itoa(1+p.IntN(5000)), "10s", "10s", "10s")
}

func (p picker) quantity() string {
	return p.maybe("1", "0", "2", "3", "-1", "-4", "5", "16", "17", "120", "121", "1000000000001", "-1000000000001", "x", "-999", strconv.Itoa(p.IntN(200)))
}

func (p picker) limit() string {
	return p.of("5", "5", "10", "16", "1", "2", "120", "121", "1000", "100000", "1000000000000", "0", strconv.Itoa(1+p.IntN(300)))
}

func (p picker) throttle() string {
	count := p.of("1", "1", "7", "5", "30", "60", "997", "1000", "36000", "1000000007", "1000000000000", strconv.Itoa(1+p.IntN(1000)))
	return p.limit() + " " + count + " " + p.period() + p.quantity()
}

func (p picker) windowed() string { return p.limit() + " " + p.period() + p.quantity() }

func (p picker) align() string {
	return "ALIGN " + p.of("0", "1h", "-1h", "+05:45", "-03:30", "16d", "-27d", "28d", "x")
}

func (p picker) quota() string {
	if p.IntN(8) == 0 {
		return p.limit() + " " + p.of("1mo", "3mo", "12mo", "1200mo", "0mo") + p.quantity()
	}
	return p.windowed()
}

func (p picker) slot() string {
	return "LEASE " + p.limit() + " " + p.period() + " " + p.of("a", "b", "c", "d", "e", "f")
}

func (p picker) share() string {
	return p.maybe("SHARE 1", "SHARE 2", "SHARE 4", "SHARE 1000", "SHARE 0")
}

// chain is a call of one or two tenants. Their limits stay, so that their shares deny often.
func (p picker) chain(front, team, user string) string {
	tenant := func(key, words string) string {
		return "KEY " + key + " " + words + p.maybe("0", "2", "3", "-1", "7") + " SHARE " + p.of("1", "1", "2", "5")
	}
	return "GO.ALL K0 " + front + p.maybe("0", "2", "-2") + " " + p.of(tenant("K1", team), "") + " " + tenant("K2", user) + p.maybe("MS") + p.maybe("", "", "FORCE")
}

func (p picker) clause() string {
	switch p.IntN(4) {
	case 0:
		return "WINDOW " + p.windowed() + p.maybe("EXACT") + p.share()
	case 1:
		return "QUOTA " + p.quota() + p.share() + p.maybe(p.align())
	case 2:
		return p.slot() + p.share()
	}
	text := ""
	for range 1 + p.IntN(3) {
		text += "THROTTLE " + p.throttle() + p.maybe("LOCKOUT 9", "LOCKOUT 40") + " "
	}
	return strings.TrimSpace(text)
}

// calls make a random call of a command, with K0 to K2 in place of keys.
var calls = map[string]func(picker) string{
	"THROTTLE": func(p picker) string {
		return "GO.THROTTLE K0 " + p.throttle() + p.maybe("UPTO", "FORCE", "RAISE", "RAISE", "RESERVE 20", "RESERVE 900d", "LOCKOUT 9", "LOCKOUT 1h", "UPTO FORCE") + p.maybe("MS")
	},
	"CL": func(p picker) string { return "CL.THROTTLE K0 " + p.throttle() },
	"WINDOW": func(p picker) string {
		return "GO.WINDOW K0 " + p.windowed() + p.maybe("UPTO", "FORCE", "RAISE", "ALIGN 1") + p.maybe("EXACT") + p.maybe("MS")
	},
	"QUOTA": func(p picker) string {
		return "GO.QUOTA K0 " + p.quota() + p.maybe("UPTO", "FORCE", "RAISE") + p.maybe(p.align()) + p.maybe("MS")
	},
	"LEASE": func(p picker) string {
		id := func() string { return p.of("a", "b", "c", "d", "e", "f", "g", "h", "i", "j") }
		if p.IntN(5) == 0 {
			return "GO.RELEASE K0 " + id() + " " + id() + p.maybe(id())
		}
		return "GO.LEASE K0 " + p.limit() + " " + p.period() + " " + id() + p.maybe("MS")
	},
	"ALL": func(p picker) string {
		return "GO.ALL K0 " + p.clause() + p.maybe("KEY K1 "+p.clause()) + p.maybe("KEY K2 "+p.clause()) + p.maybe("MS") + p.maybe("FORCE")
	},
	"SHARE": func(p picker) string {
		return p.chain(p.of("THROTTLE 9 10 10s", "THROTTLE 9 10 10s", "THROTTLE 12 7 10s", "THROTTLE 9 10 10s 2 LOCKOUT 9 THROTTLE 29 1 1s"), "WINDOW 1000 20s", "WINDOW 30 10s EXACT")
	},
	"SHARE of WINDOW": func(p picker) string { return p.chain("WINDOW 20 10s", "WINDOW 1000 20s", "QUOTA 1000 9s") },
	"SHARE of QUOTA":  func(p picker) string { return p.chain("QUOTA 40 10s", "QUOTA 1000 5s ALIGN 1s", "WINDOW 500 9s") },
	"SHARE of LEASE": func(p picker) string {
		slot := func(limit string) string {
			return "LEASE " + limit + p.of(" 7s ", " 1m ", " 10s ") + string(rune('a'+p.IntN(20)))
		}
		return "GO.ALL K0 " + slot("9") + " " + p.of("KEY K1 "+slot("7")+" SHARE 1", "") + " KEY K2 " + slot("9") + " SHARE " + p.of("1", "2") + p.maybe("MS")
	},
}

// noise changes a key as no limiter does. T0 is a time.
var noise = []string{"DEL K0", "DEL K0", "PERSIST K0", "PEXPIRE K0 5000", "SET K0 T", "SET K0 5@T", "SET K0 x", "HSET K0 0 T 1 60", "HSET K0 0 T 1 60 2 3 3 7",
	"HSET K0 2 1 3 9", "HSET K0 4 T 5 1 128 T", "HSET K0 128 T", "HSET K0 f v", "ZADD K0 -1 x", "ZADD K0 -1800000000000000 \x01zzzzzzzzzzz", "ZADD K0 -1800000000000000 \x01zzz:9:4"}

// No transcript has calls by turns: the module and the script decide about two keys of the same content, and change places
// after each call. All replies, contents and expiries are equal. The script writes nothing where it names the module.
// GOTHROTTLE_SCRIPT_CALLS is how many calls each command gets, and GOTHROTTLE_SCRIPT_SEED repeats a failure.
func TestScript_random(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("GOTHROTTLE_SCRIPT_CALLS"))
	if err != nil {
		n = 1500
	}
	c := servers.FrozenClock(t, corpus.Epoch)
	s := start(t, options{Clock: c})
	sha := s.ScriptLoad(ctx, script(t)).Val()
	seed, err := strconv.ParseUint(os.Getenv("GOTHROTTLE_SCRIPT_SEED"), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			t.Logf("seed %d", seed)
			turns := &turns{t: t, server: s, clock: c, sha: sha, p: picker{rand.New(rand.NewPCG(seed, 1))}}
			s.must("FLUSHALL")
			for range n {
				turns.step(call)
			}
			t.Logf("%d calls, %d out of the script's range, %d errors", n, turns.beyond, turns.errors)
			require.Less(t, turns.beyond, n/4)
		})
	}
}

type turns struct {
	t              *testing.T
	server         *server
	clock          *servers.Clock
	sha            string
	p              picker
	turn           int
	beyond, errors int
}

// side returns the words of a call with the keys of the module's side, 0, or of the script's, 1.
func (r *turns) side(call string, side int) []string {
	prefix := string(rune('a' + (r.turn+side)%2))
	words := strings.Fields(call)
	for i, word := range words {
		if len(word) == 2 && word[0] == 'K' {
			words[i] = prefix + word[1:]
		}
	}
	return words
}

func (r *turns) step(call func(picker) string) {
	p := r.p
	if p.IntN(4) == 0 {
		step := []int64{1, 1000, p.Int64N(100_000), p.Int64N(10_000_000), p.Int64N(10_000_000), p.Int64N(100_000_000), p.Int64N(7200_000_000)}[p.IntN(7)]
		r.clock.Set(r.clock.Wall + step)
		r.server.sees(r.clock)
	}
	if p.IntN(20) == 0 {
		text := strings.ReplaceAll(noise[p.IntN(len(noise))], "T", strconv.FormatInt(r.clock.Wall*1000+p.Int64N(60_000_000_000)/1000*1000, 10))
		if strings.Contains(text, "DEL") || strings.Contains(text, "PE") || p.IntN(4) == 0 {
			text = strings.ReplaceAll(text, "K0", "K"+strconv.Itoa(p.IntN(3)))
			_, _ = r.server.Do(ctx, corpus.Args(r.side(text, 0))...).Result()
			_, _ = r.server.Do(ctx, corpus.Args(r.side(text, 1))...).Result()
		}
	}
	r.compare(call(p))
	r.turn++
}

func (r *turns) compare(text string) {
	var replies [2]*redis.Cmd
	var held [2][]redis.Cmder
	module, byTheScript := r.side(text, 0), byScript("EVALSHA", r.sha, r.side(text, 1))
	_, _ = r.server.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		replies[0], replies[1] = pipe.Do(ctx, corpus.Args(module)...), pipe.Do(ctx, byTheScript...)
		for side := range 2 {
			for key := range 3 {
				name := string(rune('a'+(r.turn+side)%2)) + strconv.Itoa(key)
				held[side] = append(held[side], pipe.Dump(ctx, name), pipe.PExpireTime(ctx, name))
			}
		}
		return nil
	})
	got := replies[1].Err()
	if got != nil {
		r.errors++
	}
	if got != nil && strings.HasSuffix(got.Error(), "use the module") {
		r.beyond++
		r.level()
		return
	}
	want, have := show(replies[0], held[0]), show(replies[1], held[1])
	require.Equal(r.t, want, have, "%s at %d, after %d calls\nbefore: %q", text, r.clock.Wall, r.turn, module)
}

func show(reply *redis.Cmd, held []redis.Cmder) string {
	value, err := reply.Result()
	text := fmt.Sprintln(value, err)
	for _, cmd := range held {
		switch cmd := cmd.(type) {
		case *redis.StringCmd:
			text += fmt.Sprintf("%q ", cmd.Val())
		case *redis.DurationCmd:
			text += fmt.Sprintln(cmd.Val())
		}
	}
	return text
}

// level gives the script's side what the module's side holds.
func (r *turns) level() {
	for key := range 3 {
		from, to := r.side("K"+strconv.Itoa(key), 0)[0], r.side("K"+strconv.Itoa(key), 1)[0]
		require.NoError(r.t, r.server.Del(ctx, to).Err())
		require.NoError(r.t, r.server.Copy(ctx, from, to, 0, true).Err())
	}
}
