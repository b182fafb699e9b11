package tests

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// looked returns a reply of GO.INFO, in whichever protocol, as text with sorted names. Times are in
// minutes, rounded up, so they do not change while a test runs. Ages are rounded down.
func looked(t testing.TB, v any, err error) string {
	t.Helper()
	if err != nil || v == nil {
		return flat(v, err)
	}
	return fmt.Sprint(inMinutes(t, pairs(t, v), false))
}

// pairs returns a map in whichever protocol.
func pairs(t testing.TB, v any) map[string]any {
	t.Helper()
	three, ok := v.(map[any]any)
	if !ok {
		return dict(t, v)
	}
	m := map[string]any{}
	for name, value := range three {
		m[fmt.Sprint(name)] = value
	}
	return m
}

func inMinutes(t testing.TB, m map[string]any, all bool) map[string]any {
	const minute = 60_000
	for name, v := range m {
		switch n, isNumber := v.(int64); {
		case name == "cells":
			cells := []any{}
			for _, cell := range v.([]any) {
				cells = append(cells, inMinutes(t, pairs(t, cell), false))
			}
			m[name] = cells
		case name == "holders":
			m[name] = inMinutes(t, pairs(t, v), true)
		case isNumber && strings.HasSuffix(name, "_age_ms"):
			m[name] = n / minute
		case isNumber && n > 1 && name != "period_ms" && (all || strings.HasSuffix(name, "_ms")):
			m[name] = (n - 1 + minute - 1) / minute // an expiry may lie up to a ms after its instant
		}
	}
	return m
}

// look calls GO.INFO.
func (s *server) look(key string) string {
	v, err := s.Do(ctx, "GO.INFO", key).Result()
	return looked(s.t, v, err)
}

// states of all kinds, and what GO.INFO tells of them. A state lives for days.
var infoStates = []struct {
	key   string
	calls []string
	want  string
}{
	{"none", nil, "(nil)"},
	{"throttle", []string{"GO.THROTTLE throttle 9 1 3600 3"}, "map[cells:[map[count:1 empty_in_ms:180 in_use:3 locked_for_ms:0 period_ms:3600000]] expires_in_ms:195 kind:throttle]"},
	{"fraction", []string{"GO.THROTTLE fraction 9 7 21600 7"}, "map[cells:[map[count:7 empty_in_ms:360 in_use:7 locked_for_ms:0 period_ms:21600000]] expires_in_ms:450 kind:throttle]"},
	{"debt", []string{"GO.THROTTLE debt 0 1 3600 5 FORCE"}, "map[cells:[map[count:1 empty_in_ms:300 in_use:5 locked_for_ms:0 period_ms:3600000]] expires_in_ms:315 kind:throttle]"},
	{"locked", []string{"GO.THROTTLE locked 0 1 3600 LOCKOUT 7200", "GO.THROTTLE locked 0 1 3600 LOCKOUT 7200"},
		"map[cells:[map[count:1 empty_in_ms:60 in_use:1 locked_for_ms:120 period_ms:3600000]] expires_in_ms:135 kind:throttle]"},
	{"cells", []string{"GO.ALL cells THROTTLE 9 1 3600 2 THROTTLE 99 10 3600000 5"},
		"map[cells:[map[count:1 empty_in_ms:120 in_use:2 locked_for_ms:0 period_ms:3600000] map[count:1 empty_in_ms:30000 in_use:5 locked_for_ms:0 period_ms:360000000]] expires_in_ms:30015 kind:throttle]"},
	{"window", []string{"GO.WINDOW window 9 3600 2 EXACT", "GO.WINDOW window 9 3600 3 EXACT", "GO.WINDOW window 9 3600 -1"},
		"map[entries:2 expires_in_ms:75 kind:window newest_age_ms:0 oldest_age_ms:0 recorded:4]"},
	{"quota", []string{"GO.QUOTA quota 9 3600 2"}, "map[ends_in_ms:60 expires_in_ms:75 kind:quota used:2]"},
	{"lease", []string{"GO.LEASE lease 9 3600 a", "GO.LEASE lease 9 7200 \xff\x00b"}, "map[expires_in_ms:150 held:2 holders:map[a:60 \xff\x00b:120] kind:lease]"},
	{"adopted", []string{"CELL"}, "map[cells:[map[count:<nil> empty_in_ms:120 in_use:<nil> locked_for_ms:0 period_ms:<nil>]] expires_in_ms:120 kind:throttle]"},
}

// fillInfo makes the keys of infoStates.
func (s *server) fillInfo() {
	s.t.Helper()
	require.NoError(s.t, s.FlushAll(ctx).Err())
	for _, state := range infoStates {
		for _, call := range state.calls {
			if call == "CELL" {
				s.cell(state.key, 7_200_000)
				continue
			}
			s.must(call)
		}
	}
}

// GO.INFO tells the same in every way to call it: a flat array in RESP2, a map in RESP3.
func TestGoInfo_everyWay(t *testing.T) {
	s := start(t, options{})
	s.fillInfo()
	code := "#!lua name=looks\nredis.register_function{function_name='look', flags={'no-writes'}, callback=function(keys, args) return redis.call(unpack(args)) end}"
	require.NoError(t, s.FunctionLoadReplace(ctx, code).Err())
	resp2 := s.client(options2)
	for _, state := range infoStates {
		words := []any{"GO.INFO", state.key}
		for how, c := range map[string]*redis.Cmd{
			"RESP2":         resp2.Do(ctx, words...),
			"RESP3":         s.Do(ctx, words...),
			"EVAL":          s.Eval(ctx, "return redis.call(unpack(ARGV))", nil, words...),
			"EVAL_RO":       s.EvalRO(ctx, "return redis.call(unpack(ARGV))", []string{state.key}, words...),
			"EVAL in RESP3": s.Eval(ctx, "redis.setresp(3) return redis.call(unpack(ARGV))", nil, words...),
			"FCALL_RO":      s.FCallRo(ctx, "look", []string{state.key}, words...),
		} {
			got, err := c.Result()
			if how == "EVAL in RESP3" && state.key == "adopted" {
				continue // a table of Lua holds no nil
			}
			assert.Equal(t, state.want, looked(t, got, err), "%s, %s", state.key, how)
		}
		p := s.TxPipeline()
		c := p.Do(ctx, words...)
		_, err := p.Exec(ctx)
		require.NoError(t, failure(err))
		v, err := c.Result()
		assert.Equal(t, state.want, looked(t, v, err), "%s, MULTI", state.key)
	}
	w := s.wire()
	w.do("HELLO", 3)
	w.sendRaw([]byte("GO.INFO quota\r\n"))
	line, err := w.line()
	require.NoError(t, err)
	assert.Equal(t, "%4", line)
}

// GO.INFO changes nothing: it replicates nothing, is no change for save points, disturbs no WATCH and
// keeps the encoding of a string. It runs when memory is full.
func TestGoInfo_changesNothing(t *testing.T) {
	s := start(t, options{args: []string{"--repl-diskless-sync", "no", "--appendonly", "yes"}})
	st := s.replicate()
	s.fillInfo()
	st.since()
	before, encodings := s.dataset(), map[string]string{}
	for _, state := range infoStates {
		encodings[state.key] = s.ObjectEncoding(ctx, state.key).Val()
	}
	changes := s.info("persistence", "rdb_changes_since_last_save")
	require.NoError(t, s.ConfigSet(ctx, "maxmemory", "1").Err())
	var all []string
	for _, state := range infoStates {
		all = append(all, state.key)
		assert.Equal(t, state.want, s.look(state.key), state.key)
	}
	require.NoError(t, s.ConfigSet(ctx, "maxmemory", "0").Err())
	require.NoError(t, s.Watch(ctx, func(tx *redis.Tx) error {
		for _, key := range all {
			s.look(key)
		}
		_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.Ping(ctx).Err() })
		return err
	}, all...))
	for _, state := range infoStates {
		assert.Equal(t, encodings[state.key], s.ObjectEncoding(ctx, state.key).Val(), state.key)
	}
	assert.Equal(t, "int", encodings["adopted"])
	assert.Equal(t, changes, s.info("persistence", "rdb_changes_since_last_save"))
	assert.Empty(t, st.since())
	same(t, before, s.dataset(), "after the calls")
	assert.Equal(t, fmt.Sprint(2*len(infoStates)), s.counters()["gothrottle_info_other"])
	assert.Equal(t, "0", s.counters()["gothrottle_info_errors"])
}

// A user with nothing but +@read may call GO.INFO, if the server has the API for categories.
// Otherwise the user needs the command by name. A user who may not read the key may not.
func TestGoInfo_permissions(t *testing.T) {
	s := start(t, options{})
	s.fillInfo()
	rules := "-@all +@read"
	if !s.hasACLAPI() {
		rules = "-@all +go.info"
	}
	reader, writer, other := s.as("reader", "%R~* "+rules), s.as("writer", "%W~* "+rules), s.as("other", "~other:* "+rules)
	for _, state := range infoStates {
		reply := reader.do("GO.INFO", state.key)
		assert.Equal(t, state.want, looked(t, reply, nil), state.key)
		mayOrNot(t, false, writer.do("GO.INFO", state.key), state.key)
		mayOrNot(t, false, other.do("GO.INFO", state.key), state.key)
	}
}

// A replica tells what its master tells, also of keys that lapsed but still stand, and after random
// traffic. A key whose expiry is over is no key.
func TestGoInfo_onAReplica(t *testing.T) {
	lasts(t)
	master, replica := startReplica(t)
	master.fillInfo()
	inStep(t, master, replica)
	for _, state := range infoStates {
		assert.Equal(t, state.want, replica.look(state.key), state.key)
		v, err := replica.EvalRO(ctx, "return redis.call(unpack(ARGV))", nil, "GO.INFO", state.key).Result()
		assert.Equal(t, state.want, looked(t, v, err), state.key)
	}

	require.NoError(t, master.PExpire(ctx, "quota", time.Millisecond).Err())
	eventually(t, "the key has expired", func() bool { return replica.look("quota") == "(nil)" })
	for _, row := range []struct{ call, want string }{
		{"GO.THROTTLE t 0 1 1 MS", "map[cells:[map[count:1 empty_in_ms:0 in_use:0 locked_for_ms:0 period_ms:1]] expires_in_ms:-1 kind:throttle]"},
		{"GO.WINDOW w 1 1 MS", "map[entries:1 expires_in_ms:-1 kind:window newest_age_ms:0 oldest_age_ms:0 recorded:1]"},
		{"GO.QUOTA q 1 1 MS", "map[ends_in_ms:0 expires_in_ms:-1 kind:quota used:0]"},
		{"GO.LEASE l 1 1 a MS", "map[expires_in_ms:-1 held:0 holders:map[] kind:lease]"},
	} {
		key := strings.Fields(row.call)[1]
		master.must(row.call)
		require.True(t, master.Persist(ctx, key).Val(), "%s: the key stands for at least a second", key)
		eventually(t, "nothing is in use: "+row.call, func() bool { return master.look(key) == row.want })
		inStep(t, master, replica)
		eventually(t, "nothing is in use on the replica: "+row.call, func() bool { return replica.look(key) == row.want })
	}

	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	tr := newTraffic(master, seed)
	tr.run(20_000)
	tr.settle()
	inStep(t, master, replica)
	before, kinds := master.dataset(), map[string]int{}
	for name := range before {
		key, ok := strings.CutPrefix(name, "0 ")
		if !ok {
			continue
		}
		look, there, again := master.look(key), replica.look(key), master.look(key)
		if look != again { // a unit drained in between
			continue
		}
		require.Equal(t, look, there, key)
		kind, _, _ := strings.Cut(before[name], " ")
		told := regexp.MustCompile(`^ERR|^WRONGTYPE| kind:(\w+)`).FindStringSubmatch(look)
		require.NotNil(t, told, key)
		kinds[kind+" "+told[1]]++
	}
	for _, kind := range []string{"hash throttle", "string throttle", "zset window", "zset lease", "string quota"} {
		assert.Greater(t, kinds[kind], 5, "%v", kinds)
	}
	same(t, before, master.dataset(), "after the calls")
}
