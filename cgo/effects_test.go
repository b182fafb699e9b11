package cgo_test

import (
	"fmt"
	"strings"
	"testing"

	"gothrottle/cgo/fakehost"
)

// Every way in which a decision can end, on the key k: what happened before, the call, its
// reply and what is replicated. T is now in ns, M in ms.
func TestEffects(t *testing.T) {
	type host = *fakehost.Host
	for _, row := range []struct {
		name    string
		before  func(host)
		line    string
		reply   string
		effects string
	}{
		{"a new key gets its rate and its expiry", nil,
			"k 15 30 60", "[0 16 15 -1 2]", "HSET k 0 T+2000000000 1 2; PEXPIREAT k M+10000"},
		{"a new key at a rate with a fraction", nil,
			"k 15 7 60", "[0 16 15 -1 9]", "HSET k 0 T+8571428571 1 60 2 3 3 7; PEXPIREAT k M+23572"},
		{"a steady rate writes the TAT only", calls("k 15 30 60"),
			"k 15 30 60", "[0 16 14 -1 4]", "HSET k 0 T+4000000000"},
		{"a steady rate with a fraction", calls("k 15 7 60"),
			"k 15 7 60", "[0 16 14 -1 18]", "HSET k 0 T+17142857142 2 6"},
		{"the expiry moves once it is too early", calls("k 15 30 60 5"),
			"k 15 30 60 5", "[0 16 6 -1 20]", "HSET k 0 T+20000000000; PEXPIREAT k M+28000"},
		{"milliseconds", nil,
			"k 9 1 10 3 MS", "[0 10 7 -1 30]", "HSET k 0 T+30000000 1 -10000000; PEXPIREAT k M+1030"},
		{"refund", calls("k 15 30 60 3"),
			"k 15 30 60 -1", "[0 16 14 -1 4]", "HSET k 0 T+4000000000; PEXPIREAT k M+12000"},
		{"refund to full leaves no key", calls("k 15 30 60 3"),
			"k 15 30 60 -3", "[0 16 16 -1 0]", "DEL k"},
		{"refund of more than is in use", calls("k 15 7 60 3"),
			"k 15 7 60 -9", "[0 16 16 -1 0]", "DEL k"},
		{"refund of nothing", nil,
			"k 15 30 60 -3", "[0 16 16 -1 0]", ""},

		{"from a fraction to a whole interval", calls("k 15 7 60"),
			"k 15 30 60", "[0 16 14 -1 4]", "HSET k 0 T+4000000000 1 2; HDEL k 2 3; PEXPIREAT k M+12000"},
		{"from a whole interval to a fraction", calls("k 15 30 60"),
			"k 15 7 60", "[0 16 14 -1 18]",
			"HSET k 0 T+17142857142 1 60 2 6 3 7; PEXPIREAT k M+32143"},
		{"the same rate in other words", calls("k 15 30 60"),
			"k 15 5 10", "[0 16 14 -1 4]", "HSET k 0 T+4000000000; PEXPIREAT k M+6500"},
		{"a changed rate is written even if the call is denied", calls("k 15 30 60 16"),
			"k 15 60 60", "[1 16 0 1 16]", "HSET k 0 T+16000000000 1 1; PEXPIREAT k M+20000"},
		{"but not by a peek", calls("k 15 30 60 16"),
			"k 15 60 60 0", "[0 16 0 -1 16]", ""},

		{"denied", calls("k 15 30 60 16"), "k 15 30 60", "[1 16 0 2 32]", ""},
		{"more than ever fits", calls("k 15 30 60"), "k 15 30 60 17", "[1 16 15 -1 2]", ""},
		{"peek", calls("k 15 30 60"), "k 15 30 60 0", "[0 16 15 -1 2]", ""},
		{"peek at nothing", nil, "k 15 30 60 0", "[0 16 16 -1 0]", ""},
		{"error", calls("k 15 30 60"), "k 15 30 x", "ERR period is not an integer", ""},
		{"too few words", calls("k 15 30 60"), "k 15 30",
			"ERR wrong number of arguments for 'go.throttle' command", ""},
		{"more words than fit on the stack", calls("k 15 30 60"), "k 15 30 60 1 MS x x x x x x x",
			"ERR unknown option", ""},

		{"adopted", func(h host) { h.PutString("k", tat(h, 2_500_000_000)) },
			"k 15 30 60", "[0 16 13 -1 5]", "DEL k; HSET k 0 T+4500000000 1 2; PEXPIREAT k M+12500"},
		{"adopted, and its own expiry forgotten", adoptedUntil(9000),
			"k 15 30 60", "[0 16 13 -1 5]", "DEL k; HSET k 0 T+4500000000 1 2; PEXPIREAT k M+12500"},
		{"adopted and given back", adoptedUntil(3000), "k 15 30 60 -2", "[0 16 16 -1 0]", "DEL k"},
		{"adopted and peeked at", adoptedUntil(3000), "k 15 30 60 0", "[0 16 14 -1 3]", ""},
		{"adopted and denied", adoptedUntil(3000), "k 0 30 60", "[1 1 0 3 3]", ""},

		{"PERSIST heals", expiring(fakehost.NoExpiry),
			"k 15 30 60", "[0 16 14 -1 4]", "HSET k 0 T+4000000000; PEXPIREAT k M+12000"},
		{"an EXPIRE too short heals", expiring(3999),
			"k 15 30 60", "[0 16 14 -1 4]", "HSET k 0 T+4000000000; PEXPIREAT k M+12000"},
		{"an EXPIRE too long heals", expiring(12001),
			"k 15 30 60", "[0 16 14 -1 4]", "HSET k 0 T+4000000000; PEXPIREAT k M+12000"},
		{"the earliest expiry that is right", expiring(4000), "k 15 30 60", "[0 16 14 -1 4]", "HSET k 0 T+4000000000"},
		{"the latest expiry that is right", expiring(12000), "k 15 30 60", "[0 16 14 -1 4]", "HSET k 0 T+4000000000"},
		{"a peek leaves the user's expiry", expiring(fakehost.NoExpiry), "k 15 30 60 0", "[0 16 15 -1 2]", ""},
		{"a denied call leaves the user's expiry", expiring(fakehost.NoExpiry), "k 15 30 60 16", "[1 16 15 2 2]", ""},

		{"still there at the instant of the expiry", later(10_000_000), "k 15 30 60",
			"[0 16 15 -1 2]", "HSET k 0 T+2000000000; PEXPIREAT k M+10000"},
		{"expired a millisecond later", later(10_001_000), "k 15 30 60",
			"[0 16 15 -1 2]", "DEL k; HSET k 0 T+2000000000 1 2; PEXPIREAT k M+10000"},
		{"the server's own DEL when a peek finds an expired key", later(10_001_000), "k 15 30 60 0",
			"[0 16 16 -1 0]", "DEL k"},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := loaded(t)
			if row.before != nil {
				row.before(h)
			}
			r := copyOf(h, "k")
			wantReply(t, h, "GO.THROTTLE "+row.line, row.reply)
			if got := effects(h); got != row.effects {
				t.Errorf("effects %q, want %q", got, row.effects)
			}
			r.follow(t, h, row.line, "k")
		})
	}
}

// calls makes these calls before the one of a row.
func calls(lines ...string) func(*fakehost.Host) {
	return func(h *fakehost.Host) {
		for _, line := range lines {
			call(h, "GO.THROTTLE "+line)
		}
	}
}

// adoptedUntil is a key of redis-cell's whose TAT is 2.5 s ahead, with an expiry.
func adoptedUntil(millis int64) func(*fakehost.Host) {
	return func(h *fakehost.Host) {
		h.PutString("k", tat(h, 2_500_000_000))
		h.Expire("k", h.Now()/1000+millis)
	}
}

// expiring is a key with one of 16 units in use, whose expiry a user has changed.
func expiring(millis int64) func(*fakehost.Host) {
	return func(h *fakehost.Host) {
		call(h, "GO.THROTTLE k 15 30 60")
		if millis != fakehost.NoExpiry {
			millis += h.Now() / 1000
		}
		h.Expire("k", millis)
	}
}

// later is a key with an expiry of 10 s, some time after it was made.
func later(micros int64) func(*fakehost.Host) {
	return func(h *fakehost.Host) {
		call(h, "GO.THROTTLE k 15 30 60")
		h.Advance(micros)
	}
}

// Nothing is sent, said or signalled twice: the second admitted call of an instant, and
// a key with any bytes in its name.
func TestEffects_binaryKey(t *testing.T) {
	h := loaded(t)
	key := "a\x00b \r\n" + strings.Repeat("\xff", 100_000)
	for range 2 {
		r := copyOf(h, key)
		if got := h.Call("GO.THROTTLE", key, "15", "30", "60"); got.Array == nil {
			t.Fatal(got)
		}
		r.follow(t, h, "binary key", key)
	}
	if words := h.EffectWords(); len(words) != 1 || words[0][1] != key || len(h.Signals()) != 1 {
		t.Errorf("%d effects, %d signals", len(words), len(h.Signals()))
	}
	if h.TypeOf("a") != "none" {
		t.Error("the key was cut off at the zero byte")
	}
}

// A call that an event sets off runs inside the first one.
func TestEffects_reentrance(t *testing.T) {
	h := loaded(t)
	for _, row := range []struct{ inner, reply string }{
		{"GO.THROTTLE k 15 30 60", "[0 16 14 -1 4]"},    // the same key
		{"GO.THROTTLE other 15 7 60", "[0 16 15 -1 9]"}, // another one
		{"CL.THROTTLE k 15 30 60 99", "[1 16 15 -1 2]"}, // denied
		{"GO.THROTTLE k 15 30 60 -1", "[0 16 16 -1 0]"}, // deletes the key
		{"GO.THROTTLE k 1 2 3 4 5 6 7 8 9 10 11", "ERR unknown option"},
	} {
		h.Delete("k")
		h.Delete("other")
		r := replica{}
		var heard []string
		h.Listen(func(e fakehost.Event) {
			heard = append(heard, e.String())
			if e.Name == "hset" {
				wantReply(t, h, row.inner, row.reply)
			}
		})
		wantReply(t, h, "GO.THROTTLE k 15 30 60", "[0 16 15 -1 2]")
		// The server does not tell a listener what it does itself.
		if got := strings.Join(heard, ","); got != "hset k,expire k" {
			t.Errorf("%s: heard %s", row.inner, got)
		}
		for _, words := range h.EffectWords() {
			if _, err := r.apply(words); err != nil {
				t.Errorf("%s: %v", row.inner, err)
			}
		}
		if got, want := fmt.Sprint(flat(r)), fmt.Sprint(flat(copyOf(h, "k", "other"))); got != want {
			t.Errorf("%s: the replica holds %v, the server %v", row.inner, got, want)
		}
	}
}

// The server turns calls with too few words away; should one come through, no word that
// is not there is read.
func TestArity(t *testing.T) {
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
