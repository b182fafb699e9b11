package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"gothrottle/commands/memory"
	"gothrottle/funnel"
)

// A script replies to the server's own commands as a server does, and prints as redis-cli.
func TestScript(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{"0 GO.QUOTA q 5 60 2\n1000000 TTL q", "(integer) 74"},
		{"0 GO.QUOTA q 5 60 2\n74999999 EXISTS q q", "(integer) 2"},
		{"0 GO.QUOTA q 5 60 2\n75001000 EXISTS q", "(integer) 0"},
		{"0 SET s it\n0 EXPIRE s 9\n0 PERSIST s\n0 PTTL s", "(integer) -1"},
		{"0 SET s it\n0 GO.WINDOW s 1 1", "(error) WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"5 SET s it\n0 TIME", "1) \"0\"\n2) \"5\""},
		{"0 HSET h a 1 b 2\n0 HSET h a 3 c 4", "(integer) 1"},
		{"0 ZADD z 1 a 2 b\n0 SET s 1\n0 UNLINK s q\n0 ZREM z a q b\n0 DBSIZE", "(integer) 0"},
		{"0 RPUSH l x\n0 HDEL l x", "(error) WRONGTYPE Operation against a key holding the wrong kind of value"},
		{"0 SET s 5 PXAT 9000\n0 SET s 6 KEEPTTL\n1000 PTTL s", "(integer) 8999"},
		{"0 DEL", "(error) ERR wrong number of arguments for 'del' command"},
		{"0 PEXPIRE s x", "(error) ERR value is not an integer or out of range"},
		{"0 DEL \"a", "(error) ERR quotes are not closed"},
		{"0 DEL 'a'b", "(error) ERR quotes are not closed"},
		{"0 CONFIG SET gothrottle.policies \"api QUOTA 5 1s\"\n0 GO.POLICY api:bob 3", "1) (integer) 0\n2) (integer) 5\n3) (integer) 2\n4) (integer) -1\n5) (integer) 1\n6) (integer) 0\n7) 1) (integer) 0\n   2) (integer) 5\n   3) (integer) 2\n   4) (integer) -1\n   5) (integer) 1"},
		{"0 CONFIG SET gothrottle.top-keys 9\n0 CONFIG GET gothrottle.top-KEYS", "1) \"gothrottle.top-KEYS\"\n2) \"9\""},
		{"0 help go.help", "1) \"GO.HELP [command]\"\n2) \"Lists the commands, or explains one of them.\"\n3) \"    command (with or without GO.): The command to explain.\""},
		{"0 command DOCS GO.Help no", "1) \"go.help\"\n2)  1) \"summary\"\n    2) \"Lists the commands, or explains one of them.\"\n    3) \"since\"\n    4) \"0.1.0\"\n    5) \"group\"\n    6) \"module\"\n    7) \"complexity\"\n    8) \"O(1)\"\n    9) \"syntax\"\n   10) \"GO.HELP [command]\""},
		{"0 COMMAND DOCS no", "(empty array)"},
		{"0 GO.LEASE l 5 60 \"\\x00\\\"\\n\"\n0 GO.INFO l", "1) \"kind\"\n2) \"lease\"\n3) \"expires_in_ms\"\n4) (integer) 75000\n5) \"held\"\n6) (integer) 1\n7) \"holders\"\n8) 1) \"\\x00\\\"\\n\"\n   2) (integer) 60000"},
		{`0 NO 'it\'s \x' "\q"`, `(error) ERR unknown command 'NO', with args beginning with: 'it's \x' 'q' `},
	} {
		replies := runScript(c.script)
		require.Equal(t, c.want, printed(replies[len(replies)-1], ""), c.script)
	}
}

// A log is decided as GO.THROTTLE decides its calls, and no smaller limit than the recommended one denies as few.
func TestTraffic_isDecidedAsCalls(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	calls, server, hits := make([][]funnel.Nanos, 9), memory.NewServer(), make([]int64, 9)
	for at := range funnel.Nanos(60) {
		for range 50 {
			user := rnd.IntN(9)
			calls[user] = slices.Insert(calls[user], 0, at*funnel.Second) // from the last to the first
			reply, err := server.Do((at * funnel.Second).Micros(), "GO.THROTTLE", fmt.Sprint(user), "19", "2", "1")
			require.NoError(t, err)
			if reply.([]any)[0] == int64(1) {
				hits[user]++
			}
		}
	}
	traffic, rate := newTraffic(calls), funnel.Rate{Count: 2, Period: funnel.Second}
	none := traffic.setRate(rate)
	denied, users, worst, own := traffic.decide(20)
	for user, n := range hits {
		asked, _ := traffic.ask(user, 20)
		require.Equal(t, n, asked)
		denied -= n
	}
	require.Equal(t, []int64{0, 9, slices.Max(hits), slices.Max(hits)}, []int64{denied, users, own, hits[worst]})
	require.Greater(t, own, int64(100))
	limit, _ := traffic.recommend(0)
	require.Equal(t, none, limit)
	for _, percent := range []float64{12, 50, 99, 100} {
		limit, robots := traffic.recommend(percent)
		require.Empty(t, robots)
		_, users, _, _ := traffic.decide(limit)
		require.LessOrEqual(t, float64(100*users), 9*percent)
		_, users, _, _ = traffic.decide(limit - 1)
		require.True(t, limit == 1 || float64(100*users) > 9*percent, percent)
	}
	flood, steady := make([]funnel.Nanos, 40000), make([]funnel.Nanos, 30000)
	for i := range steady {
		steady[i] = funnel.Nanos(i) * 2 * funnel.Millisecond
	}
	traffic = newTraffic(append(calls, steady, flood))
	require.Equal(t, int64(len(flood)), traffic.setRate(rate))
	limit, robots := traffic.recommend(0)
	require.Equal(t, none, limit, "robots have no say")
	require.Equal(t, []int{10, 9}, robots)
}
