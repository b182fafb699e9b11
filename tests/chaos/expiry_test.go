package main

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"gothrottle/funnel"
)

// expiring returns a model with a quota that a user made expire in 10 s.
func expiring(t *testing.T) *model {
	t.Helper()
	m := newModel()
	m.now, m.wall = begin, begin
	w := m.call(0, []string{"GO.QUOTA", "q", "2", "100"}, false)
	w.commit()
	if what := m.foreign(0, []string{"EXPIRE", "q", "10"}, "1"); what != "" {
		t.Fatal(what)
	}
	return m
}

// looked returns what the model wants of a look at the quota: "anything" if nothing is known of it.
func looked(m *model) string {
	w := m.call(0, []string{"GO.QUOTA_RO", "q", "2", "100", "0"}, false)
	return w.String()
}

// A key whose expiry is over is gone. It may come back when the clock is set back, whether it was looked at or not.
func TestModel_expiryAndTheClockSetBack(t *testing.T) {
	for _, look := range []bool{false, true} {
		m := expiring(t)
		m.wall += 10*second + millisecond
		if look && looked(m) != "[0 2 2 -1 0]" {
			t.Errorf("after the expiry: %s", looked(m))
		}
		m.steppedBack(begin)
		if looked(m) != "anything" {
			t.Errorf("the clock was set back, and looked is %v: %s", look, looked(m))
		}
	}
}

// The time of a server whose clock runs is not known exactly.
func TestModel_expiryWhileTheClockRuns(t *testing.T) {
	for after, want := range map[funnel.Micros]string{
		10*second - 2*blurred*millisecond:    "[0 2 1 -1 100]",
		10*second - blurred*millisecond + 1:  "anything",
		10*second + blurred*millisecond:      "anything",
		10*second + (blurred+1)*millisecond:  "[0 2 2 -1 0]",
		10*second + 20*blurred*millisecond/2: "[0 2 2 -1 0]",
	} {
		m := expiring(t)
		m.blur = blurred
		m.wall += after
		if got := looked(m); got != want {
			t.Errorf("%d µs after EXPIRE: %s, want %s", after, got, want)
		}
	}
}

// RESTORE with an expiry that is over makes no key.
func TestModel_restored(t *testing.T) {
	for later, want := range map[funnel.Micros]string{10*second - millisecond: "[0 2 1 -1 100]", 10 * second: "[0 2 2 -1 0]", 11 * second: "[0 2 2 -1 0]"} {
		m := expiring(t)
		d := dump{payload: "x", at: m.dbs[0]["q"].expire, entry: m.dbs[0]["q"].clone()}
		m.foreign(0, []string{"DEL", "q"}, "1")
		m.wall += later
		m.restored(0, "q", &d)
		if got := looked(m); got != want {
			t.Errorf("restored after %d µs: %s, want %s", later, got, want)
		}
	}
}

// A hash is no key any more as soon as all its fields have expired: servers delete it later.
func TestValueOf_hashWithoutFields(t *testing.T) {
	for fields, want := range map[string]string{"x": "hash", "": "none"} {
		all := map[string]string{}
		if fields != "" {
			all[fields] = "1"
		}
		kind, at, hash := redis.NewStatusCmd(ctx), redis.NewCmd(ctx), redis.NewMapStringStringCmd(ctx)
		kind.SetVal("hash")
		at.SetVal(int64(-1))
		hash.SetVal(all)
		if v := valueOf([]redis.Cmder{kind, at, hash, nil, nil}); v.typ != want {
			t.Errorf("%v: %s, want %s", all, v.typ, want)
		}
	}
}
