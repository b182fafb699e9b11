package cgo_test

import (
	"strings"
	"testing"

	"gothrottle/cgo/fakehost"
)

func TestThrottle_effects(t *testing.T) {
	wantEffects(t, []effectRow{
		{"a new key gets its rate and its expiry", nil,
			"GO.THROTTLE k 15 30 60", "[0 16 15 -1 2]", "HSET k 0 T+2000000000 1 2; PEXPIREAT k M+10000"},
		{"a new key at a rate with a fraction", nil,
			"GO.THROTTLE k 15 7 60", "[0 16 15 -1 9]", "HSET k 0 T+8571428571 1 60 2 3 3 7; PEXPIREAT k M+23572"},
		{"a steady rate writes the TAT only", run(0, "GO.THROTTLE k 15 30 60"),
			"GO.THROTTLE k 15 30 60", "[0 16 14 -1 4]", "HSET k 0 T+4000000000"},
		{"a steady rate with a fraction", run(0, "GO.THROTTLE k 15 7 60"),
			"GO.THROTTLE k 15 7 60", "[0 16 14 -1 18]", "HSET k 0 T+17142857142 2 6"},
		{"the expiry moves once it is too early", run(0, "GO.THROTTLE k 15 30 60 5"),
			"GO.THROTTLE k 15 30 60 5", "[0 16 6 -1 20]", "HSET k 0 T+20000000000; PEXPIREAT k M+28000"},
		{"milliseconds", nil,
			"GO.THROTTLE k 9 1 10 3 MS", "[0 10 7 -1 30]", "HSET k 0 T+30000000 1 -10000000; PEXPIREAT k M+1030"},
		{"refund", run(0, "GO.THROTTLE k 15 30 60 3"),
			"GO.THROTTLE k 15 30 60 -1", "[0 16 14 -1 4]", "HSET k 0 T+4000000000; PEXPIREAT k M+12000"},
		{"refund to full leaves no key", run(0, "GO.THROTTLE k 15 30 60 3"),
			"GO.THROTTLE k 15 30 60 -3", "[0 16 16 -1 0]", "DEL k"},
		{"refund of more than is in use", run(0, "GO.THROTTLE k 15 7 60 3"),
			"GO.THROTTLE k 15 7 60 -9", "[0 16 16 -1 0]", "DEL k"},
		{"refund of nothing", nil,
			"GO.THROTTLE k 15 30 60 -3", "[0 16 16 -1 0]", ""},
		{"refund of nothing while another cell is in use", run(2*second, "GO.ALL k THROTTLE 15 30 60 THROTTLE 4 5 30"),
			"GO.THROTTLE k 15 30 60 -3 UPTO", "[0 16 16 -1 0 0]", ""},

		{"from a fraction to a whole interval", run(0, "GO.THROTTLE k 15 7 60"),
			"GO.THROTTLE k 15 30 60", "[0 16 14 -1 4]", "HSET k 0 T+4000000000 1 2; HDEL k 2 3; PEXPIREAT k M+12000"},
		{"from a whole interval to a fraction", run(0, "GO.THROTTLE k 15 30 60"),
			"GO.THROTTLE k 15 7 60", "[0 16 14 -1 18]",
			"HSET k 0 T+17142857142 1 60 2 6 3 7; PEXPIREAT k M+32143"},
		{"the same rate in other words", run(0, "GO.THROTTLE k 15 30 60"),
			"GO.THROTTLE k 15 5 10", "[0 16 14 -1 4]", "HSET k 0 T+4000000000; PEXPIREAT k M+6500"},
		{"a changed rate is written even if the call is denied", run(0, "GO.THROTTLE k 15 30 60 16"),
			"GO.THROTTLE k 15 60 60", "[1 16 0 1 16]", "HSET k 0 T+16000000000 1 1; PEXPIREAT k M+20000"},
		{"a peek does not write a changed rate", run(0, "GO.THROTTLE k 15 30 60 16"),
			"GO.THROTTLE k 15 60 60 0", "[0 16 0 -1 16]", ""},

		{"denied", run(0, "GO.THROTTLE k 15 30 60 16"), "GO.THROTTLE k 15 30 60", "[1 16 0 2 32]", ""},
		{"more than ever fits", run(0, "GO.THROTTLE k 15 30 60"), "GO.THROTTLE k 15 30 60 17", "[1 16 15 -1 2]", ""},
		{"peek", run(0, "GO.THROTTLE k 15 30 60"), "GO.THROTTLE k 15 30 60 0", "[0 16 15 -1 2]", ""},
		{"peek at nothing", nil, "GO.THROTTLE k 15 30 60 0", "[0 16 16 -1 0]", ""},
		{"error", run(0, "GO.THROTTLE k 15 30 60"), "GO.THROTTLE k 15 30 x", "ERR period is not an integer", ""},
		{"too few words", run(0, "GO.THROTTLE k 15 30 60"), "GO.THROTTLE k 15 30",
			"ERR wrong number of arguments for 'go.throttle' command", ""},
		{"more words than fit on the stack", run(0, "GO.THROTTLE k 15 30 60"), "GO.THROTTLE k 15 30 60 1 MS x x x x x x x",
			"ERR unknown option 'x'", ""},

		{"adopted", func(h *fakehost.Host) { h.PutString("k", tat(h, 2_500_000_000)) },
			"GO.THROTTLE k 15 30 60", "[0 16 13 -1 5]", "DEL k; HSET k 0 T+4500000000 1 2; PEXPIREAT k M+12500"},
		{"adopted, and its own expiry forgotten", adoptedUntil(9000),
			"GO.THROTTLE k 15 30 60", "[0 16 13 -1 5]", "DEL k; HSET k 0 T+4500000000 1 2; PEXPIREAT k M+12500"},
		{"adopted and given back", adoptedUntil(3000), "GO.THROTTLE k 15 30 60 -2", "[0 16 16 -1 0]", "DEL k"},
		{"adopted and peeked at", adoptedUntil(3000), "GO.THROTTLE k 15 30 60 0", "[0 16 14 -1 3]", ""},
		{"adopted and denied", adoptedUntil(3000), "GO.THROTTLE k 0 30 60", "[1 1 0 3 3]", ""},

		{"PERSIST heals", expire(fakehost.NoExpiry, "GO.THROTTLE k 15 30 60"),
			"GO.THROTTLE k 15 30 60", "[0 16 14 -1 4]", "HSET k 0 T+4000000000; PEXPIREAT k M+12000"},
		{"an EXPIRE too short heals", expire(3999, "GO.THROTTLE k 15 30 60"),
			"GO.THROTTLE k 15 30 60", "[0 16 14 -1 4]", "HSET k 0 T+4000000000; PEXPIREAT k M+12000"},
		{"an EXPIRE too long heals", expire(12001, "GO.THROTTLE k 15 30 60"),
			"GO.THROTTLE k 15 30 60", "[0 16 14 -1 4]", "HSET k 0 T+4000000000; PEXPIREAT k M+12000"},
		{"the earliest expiry that is right", expire(4000, "GO.THROTTLE k 15 30 60"), "GO.THROTTLE k 15 30 60", "[0 16 14 -1 4]", "HSET k 0 T+4000000000"},
		{"the latest expiry that is right", expire(12000, "GO.THROTTLE k 15 30 60"), "GO.THROTTLE k 15 30 60", "[0 16 14 -1 4]", "HSET k 0 T+4000000000"},
		{"a peek leaves the user's expiry", expire(fakehost.NoExpiry, "GO.THROTTLE k 15 30 60"), "GO.THROTTLE k 15 30 60 0", "[0 16 15 -1 2]", ""},
		{"a denied call leaves the user's expiry", expire(fakehost.NoExpiry, "GO.THROTTLE k 15 30 60"), "GO.THROTTLE k 15 30 60 16", "[1 16 15 2 2]", ""},

		{"still there at the instant of the expiry", run(10_000_000, "GO.THROTTLE k 15 30 60"), "GO.THROTTLE k 15 30 60",
			"[0 16 15 -1 2]", "HSET k 0 T+2000000000; PEXPIREAT k M+10000"},
		{"expired a millisecond later", run(10_001_000, "GO.THROTTLE k 15 30 60"), "GO.THROTTLE k 15 30 60",
			"[0 16 15 -1 2]", "DEL k; HSET k 0 T+2000000000 1 2; PEXPIREAT k M+10000"},
		{"the server's own DEL when a peek finds an expired key", run(10_001_000, "GO.THROTTLE k 15 30 60"), "GO.THROTTLE k 15 30 60 0",
			"[0 16 16 -1 0]", "DEL k"},
	})
}

// adoptedUntil makes k a string of redis-cell's. Its TAT is 2.5 s ahead, its expiry millis.
func adoptedUntil(millis int64) func(*fakehost.Host) {
	return func(h *fakehost.Host) {
		h.PutString("k", tat(h, 2_500_000_000))
		h.Expire("k", h.Now()/1000+millis)
	}
}

// The server refuses calls with too few words. The module refuses them too, so that it never reads
// a missing word.
func TestThrottle_arity(t *testing.T) {
	h := loaded(t)
	h.LeaveArity()
	for _, name := range []string{"GO.THROTTLE", "CL.THROTTLE"} {
		want := "ERR wrong number of arguments for '" + strings.ToLower(name) + "' command"
		for _, line := range []string{"", " k", " k 15", " k 15 30"} {
			wantReply(t, h, name+line, want)
			wantNothing(t, h, name+line, nil)
		}
	}
	wantReply(t, h, "CL.THROTTLE k 15 30 60 1 1", "ERR wrong number of arguments for 'cl.throttle' command")
}

// A denied call at another rate loses no usage. If the usage would drain only after 2262 at that
// rate, the state keeps its own rate.
func TestThrottle_deniedAtOtherRate(t *testing.T) {
	const full = "GO.THROTTLE k 99999 100000 3600"
	h := loaded(t)
	wantReply(t, h, full+" 100000", "[0 100000 0 -1 3600]")
	before := h.Dump()
	wantReply(t, h, "GO.THROTTLE k 0 1 86400", "[1 1 0 8640000000 8640000000]")
	wantNothing(t, h, "denied", before)
	wantReply(t, h, "GO.ALL k THROTTLE 0 1 86400", "[1 1 0 8640000000 8640000000 0 [1 1 0 8640000000 8640000000]]")
	wantNothing(t, h, "denied", before)
	wantReply(t, h, full+" 0", "[0 100000 0 -1 3600]")
	wantReply(t, h, "GO.THROTTLE k 0 1 86400 -1000", "[0 1 0 -1 8553600000]")
	wantReply(t, h, full+" 0", "[0 100000 1000 -1 3564]")
}
