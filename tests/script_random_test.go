package tests

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"gothrottle/funnel"
	"gothrottle/tests/corpus"
	servers "gothrottle/tests/server"
	"gothrottle/tests/world"
)

// scripted matches the commands that the script has.
var scripted = regexp.MustCompile(`(?i)^(GO\.(THROTTLE|WINDOW|QUOTA|LEASE|ALL)(_RO)?|GO\.RELEASE|CL\.THROTTLE)$`)

// isKey matches the keys of package world.
var isKey = regexp.MustCompile(`^([twql][0-4]|p:k|(window|quota|lease)[23]?)$`)

// keysOf returns where the keys of a call are; nil if the script doesn't have the command, or the call's keys aren't clear.
func keysOf(words world.Words) (at []int) {
	if !scripted.MatchString(words[0]) || len(words) < 2 {
		return nil
	}
	at = []int{1}
	for i, word := range words {
		if strings.EqualFold(word, "KEY") && i > 1 {
			if i+1 == len(words) || !isKey.MatchString(words[i+1]) || slices.Contains(at, i) {
				return nil
			}
			at = append(at, i+1)
		}
	}
	return at
}

// next returns the next call that both can make, and where its keys are.
func next(g *world.Generator) (words world.Words, at []int) {
	for at == nil {
		words = g.Call()
		at = keysOf(words)
	}
	return words, at
}

// noise changes keys as no limiter does. K0 to K2 are keys, T is a time.
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
// after each call. All replies, contents and expiries are equal, but where the script names the module, and the replies are those
// of the exact models, which share no code with either. Eight pairs of keys take turns, so that many calls go out together though
// the clock moves after every fourth of a key.
// GOTHROTTLE_SCRIPT_CALLS is how many calls of each kind there are, and GOTHROTTLE_SCRIPT_SEED repeats a failure.
func TestScript_random(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("GOTHROTTLE_SCRIPT_CALLS"))
	if err != nil {
		n = 10_000
	}
	c := servers.FrozenClock(t, corpus.Epoch)
	s := start(t, options{Clock: c, Args: []string{"--enable-debug-command", "yes"}})
	s.must("DEBUG SET-ACTIVE-EXPIRE 0") // in its last millisecond a key exists for calls, and the server may delete one of two
	sha, level := s.ScriptLoad(ctx, script(t)).Val(), s.ScriptLoad(ctx, twins).Val()
	seed, err := strconv.ParseUint(os.Getenv("GOTHROTTLE_SCRIPT_SEED"), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	for i, name := range []string{"all commands", "few keys", "shares", "holds"} {
		t.Run(name, func(t *testing.T) {
			t.Logf("seed %d", seed)
			turns := &turns{Generator: world.NewGenerator(seed, uint64(i)), t: t, server: s, clock: c, sha: sha, twins: level}
			turns.Tight, turns.Shares, turns.Holds = i > 0, i == 2, i == 3
			for round := range (n + atOnce - 1) / atOnce {
				if round%40 == 0 { // the models know no key to which noise or odd calls have come
					s.must("FLUSHALL")
					for pair := range turns.models {
						turns.models[pair] = world.Keys{}
					}
				}
				turns.some()
			}
			t.Logf("%d calls, %d decided by the models, %d out of the script's range, %d errors", n, turns.modelled, turns.beyond, turns.errors)
			require.Less(t, turns.beyond, n/4)
			require.Less(t, turns.errors, n/2)
			require.Greater(t, turns.modelled, n/4)
		})
	}
}

const pairs, atOnce = 8, 32

// turns are calls by turns, at eight pairs of sets of keys.
type turns struct {
	*world.Generator
	t              *testing.T
	server         *server
	clock          *servers.Clock
	sha, twins     string
	turn           [pairs]int
	models         [pairs]world.Keys // what each pair holds, by the exact models
	latest         [pairs][]string   // with noise, to show if there is a failure
	beyond, errors int
	modelled       int // calls that the models decide
}

// A step is a call of both, and what differs then.
type step struct {
	pair                    int
	words                   world.Words
	disturbed               []string // keys that noise has changed before
	gone                    bool     // it has deleted them
	latest                  []string // calls of the pair, to show
	module, script, differs *redis.Cmd
}

// mark begins the keys of a pair: of the module's side, 0, or of the script's, 1.
func (r *turns) mark(pair, side int) string {
	return fmt.Sprintf("{%c%d}", 'a'+(r.turn[pair]+side)%2, pair)
}

// unmarked matches what mark returns.
var unmarked = regexp.MustCompile(`\{[ab]\d\}`)

// unlike matches the errors about what a key holds. Which one comes first depends on the order of fields and clauses.
var unlike = regexp.MustCompile(`^(WRONGTYPE|ERR( clause \d+:)? (the .* at this key|more than \d+ units would)) .*`)

// some sends calls at one time.
func (r *turns) some() {
	steps := make([]step, 0, atOnce)
	r.clock.Set(r.clock.Wall + world.Pick(r.Rand, 1, 1000, r.Int64N(100_000), r.Int64N(10_000_000), r.Int64N(10_000_000), r.Int64N(100_000_000), r.Int64N(7200_000_000)))
	pipe := r.server.Pipeline()
	now := pipe.Time(ctx)
	for range atOnce {
		pair := r.IntN(pairs)
		words, at := next(r.Generator)
		step := step{pair: pair, words: words}
		if pair%2 == 0 && r.IntN(10) == 0 { // of the other pairs, the models know nearly all
			step.disturbed, step.gone = r.disturb(pipe, pair, words, at)
		}
		r.send(pipe, &step, at)
		steps = append(steps, step)
	}
	_, _ = pipe.Exec(ctx)
	require.Equal(r.t, r.clock.Wall, now.Val().UnixMicro(), "the server has another time")
	for _, step := range steps {
		r.check(step)
	}
}

// disturb changes keys of the next call as no limiter does, on both sides, or deletes them. Of leases and quotas the script has
// all numbers exactly, even damaged ones.
func (r *turns) disturb(pipe redis.Pipeliner, pair int, next world.Words, at []int) (keys []string, gone bool) {
	text := strings.ReplaceAll(world.Pick(r.Rand, noise...), "T", strconv.FormatInt(r.clock.Wall*1000+r.Int64N(60_000_000_000)/1000*1000, 10))
	lines := [][]string{strings.Fields(text)}
	if kind := next[at[0]][0]; (kind == 'l' || kind == 'q') && r.IntN(4) == 0 {
		lines = r.Damaged("K0", kind, r.clock.Wall)
	} else if !strings.Contains(text, "DEL") && !strings.Contains(text, "PE") && r.IntN(4) > 0 {
		return nil, false
	}
	for _, line := range lines {
		for side := range 2 {
			words := slices.Clone(line)
			for i, word := range words {
				if len(word) == 2 && word[0] == 'K' && (i == 1 || words[0] == "DEL") { // a member may look like a key
					key := next[at[int(word[1]-'0')%len(at)]]
					words[i], keys = r.mark(pair, side)+key, append(keys, key)
				}
			}
			pipe.Do(ctx, corpus.Args(words)...)
		}
	}
	r.latest[pair] = append(r.latest[pair], fmt.Sprintf("%q", lines))
	return keys, lines[len(lines)-1][0] == "DEL"
}

// send adds a call to the pipeline.
func (r *turns) send(pipe redis.Pipeliner, s *step, at []int) {
	pair, words := s.pair, s.words
	module, script := slices.Clone(words), slices.Clone(words)
	var keys, level []any
	for _, i := range at {
		module[i], script[i] = r.mark(pair, 0)+words[i], r.mark(pair, 1)+words[i]
		keys, level = append(keys, script[i]), append(level, module[i], script[i])
	}
	latest := append(r.latest[pair], fmt.Sprintf("%q", words))
	r.latest[pair] = latest[max(0, len(latest)-12):]
	r.turn[pair]++
	call := append(append([]any{"EVALSHA", r.sha, len(keys)}, keys...), script[0])
	s.latest, s.module = slices.Clone(r.latest[pair]), pipe.Do(ctx, corpus.Args(module)...)
	s.script = pipe.Do(ctx, append(call, corpus.Args(script[2:])...)...)
	s.differs = pipe.Do(ctx, append([]any{"EVALSHA", r.twins, len(level)}, level...)...)
}

func (r *turns) check(s step) {
	want, wrong := s.module.Result()
	r.compare(s, want, wrong)
	have, err := s.script.Result()
	if err != nil {
		r.errors++
		if strings.HasSuffix(err.Error(), "use the module") {
			r.beyond++
			return
		}
	}
	text := func(err error) string { // it may name a word
		return unlike.ReplaceAllString(unmarked.ReplaceAllString(fmt.Sprint(err), ""), "unlike")
	}
	differs, failed := s.differs.Slice()
	if failed != nil || len(differs) > 0 || !reflect.DeepEqual(want, have) || text(wrong) != text(err) {
		require.Failf(r.t, "the script differs", "at %d, the last of %s\nmodule: %v %v\nscript: %v %v\nkeys: %q %v",
			r.clock.Wall, s.latest, want, wrong, have, err, differs, failed)
	}
}

// compare holds a reply of the module to the models of its pair.
func (r *turns) compare(s step, reply any, err error) {
	models := r.models[s.pair]
	for _, key := range s.disturbed {
		models[key] = &world.State{Unknown: !s.gone}
	}
	if err != nil {
		reply = err
	}
	call, _, differs := models.Check(world.Made{Words: s.words}, funnel.Micros(r.clock.Wall), corpus.ReplyText(reply))
	if require.NoError(r.t, differs, "the last of %s", s.latest); call != nil {
		r.modelled++
	}
}
