package tests

import (
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
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

// rare returns a word that is wrong, but mostly another.
func (p picker) rare(wrong, other string) string {
	if p.IntN(12) == 0 {
		return wrong
	}
	return other
}

func (p picker) period() string {
	return p.of("60", "1", "5s", "250ms", "1m", "1h", "1d", "7", "90d", "200d", "3600", "1000", strconv.Itoa(1+p.IntN(5000)), "10s", "10s", "10s")
}

func (p picker) quantity() string {
	return p.maybe("1", "0", "2", "3", "-1", "-4", "5", "16", "17", "120", "121", "1000000000001", p.rare("-1000000000001", "7"), p.rare("x", "1"), "-999", strconv.Itoa(p.IntN(200)))
}

func (p picker) limit() string {
	return p.of("5", "5", "10", "16", "1", "2", "120", "121", "1000", "100000", p.rare("1000000000000", "50"), p.rare("0", "3"), strconv.Itoa(1+p.IntN(300)))
}

func (p picker) throttle(period string) string {
	count := p.of("1", "1", "7", "5", "30", "60", "997", "1000", "36000", "1000000007", "1000000000000", strconv.Itoa(1+p.IntN(1000)))
	return p.limit() + " " + count + " " + period + p.quantity()
}

func (p picker) windowed() string { return p.limit() + " " + p.period() + p.quantity() }

func (p picker) align() string {
	return "ALIGN " + p.of("0", "1h", "-1h", "+05:45", "-03:30", "16d", "-27d", p.rare("28d", "27d"), p.rare("x", "9d"))
}

func (p picker) quota() string {
	if p.IntN(8) == 0 {
		return p.limit() + " " + p.of("1mo", "3mo", "12mo", "1200mo", p.rare("0mo", "2mo")) + p.quantity()
	}
	return p.windowed()
}

// chain is a call of one or two tenants. Their limits stay, so that their shares deny often. N is for a quantity.
func (p picker) chain(front, team, user string) string {
	n := func(words string, quantities ...string) string {
		return strings.Replace(words, " N", p.maybe(quantities...), 1)
	}
	tenant := func(key, words string) string {
		return "KEY " + key + " " + n(words, "0", "2", "3", "-1", "7") + " SHARE " + p.of("1", "1", "2", "5")
	}
	return "GO.ALL K0 " + n(front, "0", "2", "-2") + " " + p.of(tenant("K1", team), "") + " " + tenant("K2", user) + p.maybe("MS") + p.maybe("", "", "FORCE")
}

// all is a call of one to three keys, which mostly have these kinds of clauses.
func (p picker) all(kinds ...string) string {
	for i := range kinds {
		if p.IntN(60) == 0 {
			kinds[i] = p.of("THROTTLE", "WINDOW", "QUOTA", "LEASE")
		}
	}
	return p.rare("GO.ALL_RO", "GO.ALL") + " K0 " + p.clause(kinds[0], "") + p.maybe("KEY K1 "+p.clause(kinds[1], kinds[0])) +
		p.maybe("KEY K2 "+p.clause(kinds[2], kinds[0])) + p.maybe("MS") + p.maybe("FORCE", "", "")
}

func (p picker) clause(kind, before string) string {
	share := ""
	if (kind == "LEASE") == (before == "LEASE") && before != "" || p.IntN(40) == 0 {
		share = p.maybe("SHARE 1", "SHARE 2", "SHARE 4", "SHARE 1000", p.rare("SHARE 0", "SHARE 3"))
	}
	switch kind {
	case "WINDOW":
		return "WINDOW " + p.windowed() + p.maybe("EXACT") + share
	case "QUOTA":
		return "QUOTA " + p.quota() + share + p.maybe(p.align())
	case "LEASE":
		return "LEASE " + p.limit() + " " + p.period() + " " + p.of("a", "b", "c", "d", "e", "f") + share
	}
	text := ""
	for range 1 + p.IntN(3) {
		text += "THROTTLE " + p.throttle(p.period()) + p.maybe("LOCKOUT 9", "LOCKOUT 40") + " "
	}
	return strings.TrimSpace(text)
}

// calls make a random call of a command, with K0 to K2 in place of keys.
var calls = map[string]func(picker) string{
	"THROTTLE": func(p picker) string {
		return p.rare("GO.THROTTLE_RO", "GO.THROTTLE") + " K0 " + p.throttle(p.period()) + p.maybe("UPTO", "FORCE", "RAISE", "RAISE", "RESERVE 20", "RESERVE 900d", "LOCKOUT 9", "LOCKOUT 1h", "UPTO FORCE") + p.maybe("MS")
	},
	"CL": func(p picker) string {
		return "CL.THROTTLE K0 " + p.throttle(p.of("60", "1", "7", "10", "3600", strconv.Itoa(1+p.IntN(5000)), p.rare("5s", "5")))
	},
	"WINDOW": func(p picker) string {
		return p.rare("GO.WINDOW_RO", "GO.WINDOW") + " K0 " + p.windowed() + p.maybe("UPTO", "FORCE", "RAISE", "ALIGN 1") + p.maybe("EXACT") + p.maybe("MS")
	},
	"QUOTA": func(p picker) string {
		return p.rare("GO.QUOTA_RO", "GO.QUOTA") + " K0 " + p.quota() + p.maybe("UPTO", "FORCE", "RAISE") + p.maybe(p.align()) + p.maybe("MS")
	},
	"LEASE": func(p picker) string {
		id := func() string { return p.of("a", "b", "c", "d", "e", "f", "g", "h", "i", "j") }
		if p.IntN(5) == 0 {
			return "GO.RELEASE K0 " + id() + " " + id() + p.maybe(id())
		}
		return "GO.LEASE K0 " + p.limit() + " " + p.period() + " " + id() + p.maybe("MS")
	},
	"ALL":          func(p picker) string { return p.all("THROTTLE", "WINDOW", "QUOTA") },
	"ALL of LEASE": func(p picker) string { return p.all("LEASE", "LEASE", "THROTTLE") },
	"SHARE": func(p picker) string {
		front := p.of("THROTTLE 9 10 10s N", "THROTTLE 9 10 10s N", "THROTTLE 12 7 10s N", "THROTTLE 9 10 10s 2 LOCKOUT 9 THROTTLE 29 1 1s N")
		return p.chain(front, "WINDOW 1000 20s N", "WINDOW 30 10s N EXACT")
	},
	"SHARE of WINDOW": func(p picker) string { return p.chain("WINDOW 20 10s N", "WINDOW 1000 20s N", "QUOTA 1000 9s N") },
	"SHARE of QUOTA":  func(p picker) string { return p.chain("QUOTA 40 10s N", "QUOTA 1000 5s N ALIGN 1s", "WINDOW 500 9s N") },
	"SHARE of LEASE": func(p picker) string {
		slot := func(limit string) string {
			return "LEASE " + limit + p.of(" 7s ", " 1m ", " 10s ") + string(rune('a'+p.IntN(20)))
		}
		return "GO.ALL K0 " + slot("9") + " " + p.of("KEY K1 "+slot("7")+" SHARE 1", "") + " KEY K2 " + slot("9") + " SHARE " + p.of("1", "2") + p.maybe("MS")
	},
}

// noise changes a key as no limiter does. T0 is a time.
var noise = []string{"DEL K0 K1 K2", "DEL K0 K1 K2", "DEL K0 K1 K2", "PERSIST K0", "PEXPIRE K0 5000", "SET K0 T", "SET K0 5@T", "SET K0 x", "HSET K0 0 T 1 60", "HSET K0 0 T 1 60 2 3 3 7",
	"HSET K0 2 1 3 9", "HSET K0 4 T 5 1 128 T", "HSET K0 128 T", "HSET K0 f v", "ZADD K0 -1 x", "ZADD K0 -1800000000000000 \x01zzzzzzzzzzz", "ZADD K0 -1800000000000000 \x01zzz:9:4"}

// twins makes the script's keys equal to the module's, which come before them, and replies what was different. Each step
// begins from what the module has left.
const twins = `local differ = {}
for i = 1, #KEYS, 2 do
  local a, b = redis.call('DUMP', KEYS[i]), redis.call('DUMP', KEYS[i + 1])
  local c, d = redis.call('PEXPIRETIME', KEYS[i]), redis.call('PEXPIRETIME', KEYS[i + 1])
  if a ~= b or c ~= d then
    differ[#differ + 1] = {KEYS[i], a, c, b, d}
    redis.call('DEL', KEYS[i + 1])
    redis.call('COPY', KEYS[i], KEYS[i + 1])
  end
end
return differ`

// No transcript has calls by turns: the module and the script decide about two keys of the same content, and change places
// after each call. All replies, contents and expiries are equal, but where the script names the module. Eight pairs of keys
// take turns, so that many calls go out at once though the clock moves after every fourth of a key.
// GOTHROTTLE_SCRIPT_CALLS is how many calls each command gets, and GOTHROTTLE_SCRIPT_SEED repeats a failure.
func TestScript_random(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("GOTHROTTLE_SCRIPT_CALLS"))
	if err != nil {
		n = 1500
	}
	c := servers.FrozenClock(t, corpus.Epoch)
	s := start(t, options{Clock: c, Args: []string{"--enable-debug-command", "yes"}})
	s.must("DEBUG SET-ACTIVE-EXPIRE 0") // in its last millisecond a key exists for calls, and the server may delete one of two
	sha, level := s.ScriptLoad(ctx, script(t)).Val(), s.ScriptLoad(ctx, twins).Val()
	seed, err := strconv.ParseUint(os.Getenv("GOTHROTTLE_SCRIPT_SEED"), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			t.Logf("seed %d", seed)
			turns := &turns{t: t, server: s, clock: c, sha: sha, twins: level, p: picker{rand.New(rand.NewPCG(seed, 1))}}
			s.must("FLUSHALL")
			for range (n + atOnce - 1) / atOnce {
				turns.some(call)
			}
			t.Logf("%d calls, %d out of the script's range, %d errors", n, turns.beyond, turns.errors)
			require.Less(t, turns.beyond, n/4)
			require.Less(t, turns.errors, n/2)
		})
	}
}

const pairs, atOnce = 8, 32

type turns struct {
	t              *testing.T
	server         *server
	clock          *servers.Clock
	sha, twins     string
	p              picker
	turn           [pairs]int
	latest         [pairs][]string // with noise, to show if there is a failure
	beyond, errors int
}

// A step is a call of both, and what differs then.
type step struct {
	calls                   []string
	module, script, differs *redis.Cmd
}

// on returns the words of a call with the keys of a pair: of the module's side, 0, or of the script's, 1.
func (r *turns) on(pair int, call string, side int) []string {
	prefix := string(rune('a'+(r.turn[pair]+side)%2)) + strconv.Itoa(pair)
	words := strings.Fields(call)
	for i, word := range words {
		if len(word) == 2 && word[0] == 'K' {
			words[i] = prefix + word[1:]
		}
	}
	return words
}

// some sends calls at one time.
func (r *turns) some(call func(picker) string) {
	p, steps := r.p, make([]step, 0, atOnce)
	later := []int64{1, 1000, p.Int64N(100_000), p.Int64N(10_000_000), p.Int64N(10_000_000), p.Int64N(100_000_000), p.Int64N(7200_000_000)}
	r.clock.Set(r.clock.Wall + later[p.IntN(len(later))])
	pipe := r.server.Pipeline()
	now := pipe.Time(ctx)
	for range atOnce {
		pair := p.IntN(pairs)
		if p.IntN(20) == 0 {
			r.disturb(pipe, pair)
		}
		steps = append(steps, r.send(pipe, pair, call(p)))
	}
	_, _ = pipe.Exec(ctx)
	require.Equal(r.t, r.clock.Wall, now.Val().UnixMicro(), "the server has another time")
	for _, step := range steps {
		r.check(step)
	}
}

// disturb changes both keys of a pair as no limiter does.
func (r *turns) disturb(pipe redis.Pipeliner, pair int) {
	p := r.p
	text := strings.ReplaceAll(noise[p.IntN(len(noise))], "T", strconv.FormatInt(r.clock.Wall*1000+p.Int64N(60_000_000_000)/1000*1000, 10))
	if strings.Contains(text, "DEL") || strings.Contains(text, "PE") || p.IntN(4) == 0 {
		text = strings.ReplaceAll(text, "K0", "K"+strconv.Itoa(p.IntN(3)))
		pipe.Do(ctx, corpus.Args(r.on(pair, text, 0))...)
		pipe.Do(ctx, corpus.Args(r.on(pair, text, 1))...)
		r.latest[pair] = append(r.latest[pair], text)
	}
}

// send adds a call to the pipeline.
func (r *turns) send(pipe redis.Pipeliner, pair int, call string) step {
	module, script := r.on(pair, call, 0), r.on(pair, call, 1)
	keys, level := []any{script[1]}, []any{module[1], script[1]}
	for i, word := range script[:len(script)-1] {
		if word == "KEY" {
			keys, level = append(keys, script[i+1]), append(level, module[i+1], script[i+1])
		}
	}
	latest := append(r.latest[pair], call)
	r.latest[pair] = latest[max(0, len(latest)-12):]
	r.turn[pair]++
	words := append(append([]any{"EVALSHA", r.sha, len(keys)}, keys...), script[0])
	return step{slices.Clone(r.latest[pair]), pipe.Do(ctx, corpus.Args(module)...),
		pipe.Do(ctx, append(words, corpus.Args(script[2:])...)...), pipe.Do(ctx, append([]any{"EVALSHA", r.twins, len(level)}, level...)...)}
}

func (r *turns) check(s step) {
	want, wrong := s.module.Result()
	have, err := s.script.Result()
	if err != nil {
		r.errors++
		if strings.HasSuffix(err.Error(), "use the module") {
			r.beyond++
			return
		}
	}
	differs, failed := s.differs.Slice()
	if failed != nil || len(differs) > 0 || !reflect.DeepEqual(want, have) || fmt.Sprint(wrong) != fmt.Sprint(err) {
		require.Failf(r.t, "the script differs", "at %d, the last of %q\nmodule: %v %v\nscript: %v %v\nkeys: %q %v",
			r.clock.Wall, s.calls, want, wrong, have, err, differs, failed)
	}
}
