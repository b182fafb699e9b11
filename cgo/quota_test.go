package cgo_test

import (
	"strconv"
	"testing"

	"gothrottle/cgo/fakehost"
)

// The fake host's clock starts at a full hour, but not at the start of a day.
func TestQuota_effects(t *testing.T) {
	wantEffects(t, []effectRow{
		{"a window starts at the first call", nil,
			"GO.QUOTA k 10 60", "[0 10 9 -1 60]", "SET k 1@T+60000000000 PXAT M+75000"},
		{"several units", nil,
			"GO.QUOTA k 999999999999 60 999999999999", "[0 999999999999 0 -1 60]",
			"SET k 999999999999@T+60000000000 PXAT M+75000"},
		{"milliseconds", nil, "GO.QUOTA k 10 500 ms", "[0 10 9 -1 500]", "SET k 1@T+500000000 PXAT M+1500"},
		{"in a window the expiry stays", run(20*second, "GO.QUOTA k 10 60"),
			"GO.QUOTA k 10 60 2", "[0 10 7 -1 40]", "SET k 3@T+40000000000 KEEPTTL"},
		{"the text gets longer", run(20*second, "GO.QUOTA k 10 60 9"),
			"GO.QUOTA k 10 60", "[0 10 0 -1 40]", "SET k 10@T+40000000000 KEEPTTL"},
		{"the text gets shorter", run(20*second, "GO.QUOTA k 10 60 10"),
			"GO.QUOTA k 10 60 -1", "[0 10 1 -1 40]", "SET k 9@T+40000000000 KEEPTTL"},
		{"the last instant of a window", run(60*second-1, "GO.QUOTA k 10 60"),
			"GO.QUOTA k 10 60 9", "[0 10 0 -1 1]", "SET k 10@T+1000 KEEPTTL"},
		{"at its end a new one starts", run(60*second, "GO.QUOTA k 10 60 10"),
			"GO.QUOTA k 10 60", "[0 10 9 -1 60]", "SET k 1@T+60000000000 PXAT M+75000"},
		{"a changed period takes effect with the next window", run(second, "GO.QUOTA k 10 60 3"),
			"GO.QUOTA k 10 5", "[0 10 6 -1 59]", "SET k 4@T+59000000000 PXAT M+60250"},
		{"a longer one leaves an expiry that is good", run(second, "GO.QUOTA k 10 60 3"),
			"GO.QUOTA k 10 6000", "[0 10 6 -1 59]", "SET k 4@T+59000000000 KEEPTTL"},

		{"ALIGN: the window ends with the calendar", run(20 * 60 * second),
			"GO.QUOTA k 10 3600 align 0", "[0 10 9 -1 2400]", "SET k 1@T+2400000000000 PXAT M+3300000"},
		{"ALIGN on the boundary", nil,
			"GO.QUOTA k 10 3600 ALIGN 0", "[0 10 9 -1 3600]", "SET k 1@T+3600000000000 PXAT M+4500000"},
		{"ALIGN with an offset", run(20 * 60 * second),
			"GO.QUOTA k 10 3600 1 ALIGN -1800", "[0 10 9 -1 600]", "SET k 1@T+600000000000 PXAT M+1500000"},
		{"ALIGN in milliseconds", run(300_000),
			"GO.QUOTA k 10 1000 1 ALIGN 500 MS UPTO", "[0 10 9 -1 200 1]", "SET k 1@T+200000000 PXAT M+1200"},

		{"UPTO takes what is left", run(second, "GO.QUOTA k 10 60 7"),
			"GO.QUOTA k 10 60 50 UPTO", "[0 10 0 59 59 3]", "SET k 10@T+59000000000 KEEPTTL"},
		{"UPTO of nothing left", run(second, "GO.QUOTA k 10 60 10"),
			"GO.QUOTA k 10 60 50 UPTO", "[1 10 0 59 59 0]", ""},

		{"refund", run(second, "GO.QUOTA k 10 60 7"),
			"GO.QUOTA k 10 60 -2 upto", "[0 10 5 -1 59 -2]", "SET k 5@T+59000000000 KEEPTTL"},
		{"refund to full leaves no key", run(second, "GO.QUOTA k 10 60 7"),
			"GO.QUOTA k 10 60 -7", "[0 10 10 -1 0]", "DEL k"},
		{"refund of more than is in use", run(second, "GO.QUOTA k 10 60 7"),
			"GO.QUOTA k 10 60 -8 UPTO", "[0 10 10 -1 0 -7]", "DEL k"},
		{"refund after the end", run(61*second, "GO.QUOTA k 10 60 7"),
			"GO.QUOTA k 10 60 -1 UPTO", "[0 10 10 -1 0 0]", ""},
		{"refund of nothing", nil, "GO.QUOTA k 10 60 -1", "[0 10 10 -1 0]", ""},

		{"denied", run(second, "GO.QUOTA k 10 60 8"), "GO.QUOTA k 10 60 3", "[1 10 2 59 59]", ""},
		{"more than ever fits", run(second, "GO.QUOTA k 10 60 8"), "GO.QUOTA k 10 60 11", "[1 10 2 -1 59]", ""},
		{"peek", run(second, "GO.QUOTA k 10 60 8"), "GO.QUOTA k 10 60 0", "[0 10 2 -1 59]", ""},
		{"peek with a lowered limit", run(second, "GO.QUOTA k 10 60 8"), "GO.QUOTA k 5 60 0", "[1 5 0 59 59]", ""},
		{"peek at nothing", nil, "GO.QUOTA k 10 60 0", "[0 10 10 -1 0]", ""},
		{"peek after the end", run(61*second, "GO.QUOTA k 10 60 8"), "GO.QUOTA k 10 60 0", "[0 10 10 -1 0]", ""},
		{"error", run(second, "GO.QUOTA k 10 60 8"), "GO.QUOTA k 10 60 1 ALIGN", "ERR ALIGN needs an offset", ""},
		{"too few words", nil, "GO.QUOTA k 10", "ERR wrong number of arguments for 'go.quota' command", ""},

		{"PERSIST heals", expire(fakehost.NoExpiry, "GO.QUOTA k 10 60"),
			"GO.QUOTA k 10 60", "[0 10 8 -1 60]", "SET k 2@T+60000000000 PXAT M+75000"},
		{"PERSIST heals with a refund", expire(fakehost.NoExpiry, "GO.QUOTA k 10 60 3"),
			"GO.QUOTA k 10 60 -1", "[0 10 8 -1 60]", "SET k 2@T+60000000000 PXAT M+75000"},
		{"an EXPIRE too short heals", expire(59_999, "GO.QUOTA k 10 60"),
			"GO.QUOTA k 10 60", "[0 10 8 -1 60]", "SET k 2@T+60000000000 PXAT M+75000"},
		{"an EXPIRE too long heals", expire(75_001, "GO.QUOTA k 10 60"),
			"GO.QUOTA k 10 60", "[0 10 8 -1 60]", "SET k 2@T+60000000000 PXAT M+75000"},
		{"the earliest expiry that is right", expire(60_000, "GO.QUOTA k 10 60"),
			"GO.QUOTA k 10 60", "[0 10 8 -1 60]", "SET k 2@T+60000000000 KEEPTTL"},
		{"a denied call leaves the user's expiry", expire(fakehost.NoExpiry, "GO.QUOTA k 10 60"),
			"GO.QUOTA k 10 60 10", "[1 10 9 60 60]", ""},
		{"expired", run(75_001_000, "GO.QUOTA k 10 60"),
			"GO.QUOTA k 10 60", "[0 10 9 -1 60]", "DEL k; SET k 1@T+60000000000 PXAT M+75000"},
	})
}

// A string that is not a quota makes each call an error. No call changes the string.
func TestQuota_foreign(t *testing.T) {
	const foreign = "ERR the string at this key is not a quota"
	h := loaded(t)
	end := strconv.FormatInt(1000*(h.Now()+second), 10)
	for _, text := range []string{"", "5", "5@", "@5", "@", "05@1", "5@x", "5@01", "5@" + end + "@", "5@" + end + " ", " 5@" + end,
		"+5@" + end, "-5@" + end, "5@-" + end, "5@+" + end, "0@" + end, "5@0", "1000000000000001@" + end, "5@9007199254740993000", "5@" + end[:18] + "1",
		"5@9223372036854775808", "99999999999999999999@" + end, "5\x00@" + end, "5@" + end + "\x00", "x@" + end, "5.0@" + end, "5@" + "0000000000000000000", "05@" + end, "5#" + end, "5@ " + end[1:], "5@-" + end[1:], "5@" + end[:18] + "x",
		tat(h, 1_000_000_000), "profile of user 42", "a@b.example"} {
		h.PutString("k", text)
		h.Expire("k", h.Now()/1000+100)
		wantUntouched(t, h, foreign, "GO.QUOTA k 10 60", "GO.QUOTA k 10 60 0", "GO.QUOTA k 10 60 -5", "GO.QUOTA k 10 60 11",
			"GO.QUOTA k 10 60 UPTO", "GO.QUOTA_RO k 10 60")
	}
	// These strings are quotas with values at the ends of their ranges.
	for text, want := range map[string]string{"1@0000000000000001000": "[0 10 10 -1 0]", "1000000000000@" + end: "[1 10 0 1 1]", "5@9007199254740992000": ""} {
		h.PutString("k", text)
		if got := call(h, "GO.QUOTA k 10 60 0").String(); got != want && (want != "" || got[0] != '[') {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	for _, put := range []func(){
		func() { h.PutOther("k", "list") }, func() { h.PutOther("k", "set") }, func() { leaderboard(h) },
		func() { h.PutHash("k", "0", tat(h, 1e9), "1", "2") },
	} {
		put()
		wantUntouched(t, h, wrongType, "GO.QUOTA k 10 60", "GO.QUOTA k 10 60 0", "GO.QUOTA k 10 60 -5", "GO.QUOTA_RO k 10 60")
	}
}
