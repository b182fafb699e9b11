package tests

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The comparison of the replayer accepts equal replies and refuses different ones.
func TestReplay_comparisonTellsRepliesApart(t *testing.T) {
	five := func(n ...int64) []any {
		var all []any
		for _, v := range n {
			all = append(all, v)
		}
		return all
	}
	for _, c := range []struct {
		step string
		got  any
		ok   bool
	}{
		// Arrays are compared item by item.
		{`{"reply_kind":"array","reply":[0,16,15,-1,2]}`, five(0, 16, 15, -1, 2), true},
		{`{"reply_kind":"array","reply":[0,16,15,-1,2]}`, five(0, 16, 15, -1, 3), false},
		{`{"reply_kind":"array","reply":[0,16,15,-1,2]}`, five(0, 16, 15, -1), false},
		{`{"reply_kind":"array","reply":[0,16,15,-1,2]}`, five(0, 16, 15, -1, 2, 1), false},
		{`{"reply_kind":"array","reply":[0,16,15,-1,2]}`, []any{"0", "16", "15", "-1", "2"}, false},
		{`{"reply_kind":"array","reply":[9223372036854775807,1]}`, five(9223372036854775807, 1), true},
		{`{"reply_kind":"array","reply":[9223372036854775807,1]}`, five(9223372036854775806, 1), false},
		{`{"reply_kind":"array","reply":[0,16,15,-1,2]}`, wireError("ERR no"), false},
		// Tolerances apply to times and remaining only, and never to -1.
		{`{"reply_kind":"array","tol_s":1,"reply":[0,1,0,-1,1]}`, five(0, 1, 0, -1, 2), true},
		{`{"reply_kind":"array","tol_s":1,"reply":[0,1,0,-1,1]}`, five(0, 1, 0, -1, 3), false},
		{`{"reply_kind":"array","tol_s":1,"reply":[0,1,0,-1,1]}`, five(0, 1, 0, 0, 1), false},
		{`{"reply_kind":"array","tol_s":1,"reply":[1,1,0,0,1]}`, five(1, 1, 0, -1, 1), false},
		{`{"reply_kind":"array","tol_s":1,"reply":[0,1,0,-1,1]}`, five(1, 1, 0, -1, 1), false},
		{`{"reply_kind":"array","tol_s":1,"reply":[0,9,5,-1,1]}`, five(0, 9, 6, -1, 1), false},
		{`{"reply_kind":"array","tol_remaining":1,"reply":[0,9,5,-1,1]}`, five(0, 9, 6, -1, 1), true},
		// Replies of EXEC: arrays, errors and statuses within an array.
		{`{"reply_kind":"array","reply":[[0,2],{"error":"x"},{"status":"OK"},null]}`,
			[]any{five(0, 2), wireError("ERR"), status("OK"), nil}, true},
		{`{"reply_kind":"array","reply":[{"error":"x"}]}`, []any{"x"}, false},
		{`{"reply_kind":"array","reply":[{"status":"OK"}]}`, []any{"OK"}, false},
		// The texts of errors need not be equal, also where a script returns the text.
		{`{"reply_kind":"error","reply":"Cell error: x"}`, wireError("ERR y"), true},
		{`{"reply_kind":"error","reply":"Cell error: x"}`, "ERR y", false},
		{`{"reply_kind":"error","reply":"x","match":"prefix"}`, wireError("ERR y"), true},
		{`{"reply_kind":"bulk","reply":"Cell error: x"}`, "ERR y", true},
		{`{"reply_kind":"bulk","reply":"Cell error: x"}`, "hello", false},
		// Other types of replies.
		{`{"reply_kind":"status","reply":"QUEUED"}`, status("QUEUED"), true},
		{`{"reply_kind":"status","reply":"QUEUED"}`, "QUEUED", false},
		{`{"reply_kind":"int","reply":1}`, int64(1), true},
		{`{"reply_kind":"int","reply":1}`, int64(0), false},
		{`{"reply_kind":"int","reply":1}`, "1", false},
		{`{"reply_kind":"bulk","reply":"a"}`, "a", true},
		{`{"reply_kind":"bulk","reply":"a"}`, "b", false},
		{`{"reply_kind":"nil","reply":null}`, nil, true},
		{`{"reply_kind":"nil","reply":null}`, "", false},
		{`{"reply_kind":"int","match":"range","range":[3,5]}`, int64(4), true},
		{`{"reply_kind":"int","match":"range","range":[3,5]}`, int64(6), false},
		{`{"reply_kind":"bulk","match":"regex","reply":"^[0-9]{3}$"}`, "123", true},
		{`{"reply_kind":"bulk","match":"regex","reply":"^[0-9]{3}$"}`, "12", false},
		{`{"reply_kind":"bulk","match":"now_plus_ms","range":[7,8]}`, "1007500000", true},
		{`{"reply_kind":"bulk","match":"now_plus_ms","range":[7,8]}`, "1009500000", false},
		{`{"reply_kind":"surprise","reply":1}`, int64(1), false},
	} {
		var st step
		require.NoError(t, decode(c.step, &st))
		err := st.compare(c.got, func() int64 { return 1_000_000_000 })
		assert.Equal(t, c.ok, err == nil, "%s with %#v: %v", c.step, c.got, err)
	}
}

func TestReplay_replacesTheName(t *testing.T) {
	for text, want := range map[string]string{
		"CL.THROTTLE": "GO.THROTTLE",
		"cl.throttle": "go.throttle",
		"Cl.ThRoTtLe": "Go.ThRoTtLe",
		"return redis.call('CL.THROTTLE',KEYS[1])": "return redis.call('GO.THROTTLE',KEYS[1])",
		"cx:cl-throttle": "cx:cl-throttle",
	} {
		assert.Equal(t, want, under("GO.THROTTLE", text))
		assert.Equal(t, text, under("CL.THROTTLE", text))
	}
	var w []word
	require.NoError(t, json.Unmarshal([]byte(`["a", 9, {"hex":"6bff"}]`), &w))
	assert.Equal(t, []word{"a", "9", "k\xff"}, w)
}
