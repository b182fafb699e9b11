package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gothrottle/funnel"
)

// The model replies what the reference says. A line is a call and its reply, or "later" and the
// time that passes in ms, or a foreign command and its reply.
func TestModel(t *testing.T) {
	for _, c := range []struct{ name, lines string }{
		{"cells", `
			GO.THROTTLE t 4 1 60 5 = [0 5 0 -1 300]
			GO.THROTTLE t 4 1 60 = [1 5 0 60 300]
			GO.THROTTLE t 4 1 60 9 UPTO = [1 5 0 60 300 0]
			GO.THROTTLE t 4 1 60 2 FORCE = [0 5 0 -1 420]
			GO.THROTTLE t 4 1 60 1 RESERVE 180 = [0 5 0 -1 480 180]
			later 180500
			GO.THROTTLE t 4 1 60000 -100 MS UPTO = [0 5 5 -1 0 -5]`},
		{"lockout", `
			GO.THROTTLE t 0 1 10 1 LOCKOUT 60 = [0 1 0 -1 10]
			GO.THROTTLE t 0 1 10 1 LOCKOUT 60 = [1 1 0 60 60]
			later 30000
			GO.THROTTLE_RO t 0 1 10 1 = [1 1 0 30 30]
			DEL t = 1
			GO.THROTTLE t 0 1 10 1 = [0 1 0 -1 10]`},
		{"window", `
			GO.WINDOW w 3 10 2 = [0 3 1 -1 10]
			later 4000
			GO.WINDOW w 3 10 2 = [1 3 1 6 6]
			GO.WINDOW w 3 10 2 UPTO = [0 3 0 6 10 1]
			later 6000
			GO.WINDOW_RO w 3 10 = [0 3 1 -1 10]
			GO.WINDOW w 3 10 0 = [0 3 2 -1 4]`},
		{"quota", `
			GO.QUOTA q 2 10 2 ALIGN 5 = [0 2 0 -1 5]
			GO.QUOTA q 2 10 = [1 2 0 5 5]
			later 5000
			GO.QUOTA q 2 10 = [0 2 1 -1 10]`},
		{"leases", `
			GO.LEASE l 1 10 a = [0 1 0 -1 10 0]
			GO.LEASE l 1 10 a = [0 1 0 -1 10 1]
			GO.LEASE l 1 10 b = [1 1 0 10 10 0]
			GO.RELEASE l a a b = 1
			GO.RELEASE l a = 0`},
		{"all", `
			GO.ALL t THROTTLE 4 1 60 5 KEY q QUOTA 9 60 = [0 5 0 -1 300 0 [0 5 0 -1 300] [0 9 8 -1 60]]
			GO.ALL t THROTTLE 4 1 60 KEY q QUOTA 9 60 = [1 5 0 60 300 0 [1 5 0 60 300] [0 9 8 -1 60]]
			GO.ALL q QUOTA 1 60 3 FORCE = [0 1 0 -1 60 0 [0 1 0 -1 60]]
			GO.ALL q QUOTA 1 60 QUOTA 1 60 = -ERR
			GO.ALL q QUOTA 1 60 KEY q QUOTA 1 60 = -ERR
			GO.ALL l LEASE 1 10 KEY KEY t THROTTLE 4 1 60 0 = [0 1 0 -1 10 0 [0 1 0 -1 10 0] [0 5 0 -1 300]]`},
		{"policies", `
			GO.POLICY p:1 = [0 2 1 -1 60 0 [0 2 1 -1 60]]
			GO.POLICY s:1 3 = [0 2 2 -1 0 0 [1 2 2 -1 0]]
			GO.POLICY none:1 = -ERR
			GO.POLICY p = -ERR`},
		{"another kind", `
			GO.QUOTA x 2 10 = [0 2 1 -1 10]
			GO.THROTTLE x 1 1 1 = -WRONGTYPE
			GO.WINDOW x 1 1 = -WRONGTYPE
			GO.LEASE y 1 10 a = [0 1 0 -1 10 0]
			GO.WINDOW y 1 1 = -ERR
			LPUSH z a = 1
			GO.QUOTA z 1 1 = -WRONGTYPE
			SET z foreign = OK
			GO.QUOTA z 1 1 = -ERR`},
		{"a key of redis-cell", `
			SET t 1900000060000000000 = OK
			GO.THROTTLE t 59 1 1 0 = [0 60 0 -1 60]
			GO.THROTTLE t 60 1 1 = [0 61 0 -1 61]
			GO.QUOTA t 1 1 = -WRONGTYPE
			SET u 1900000060000000000 = OK
			GO.ALL u THROTTLE 99 1 1 0 THROTTLE 9 30 60 = [0 10 9 -1 2 1 [0 100 40 -1 60] [0 10 9 -1 2]]
			GO.THROTTLE u 99 30 60 0 = [0 100 40 -1 120]`},
		{"a user's expiry", `
			GO.QUOTA q 2 100 = [0 2 1 -1 100]
			EXPIRE q 10 = 1
			later 10000
			GO.QUOTA_RO q 2 100 = [0 2 0 -1 90]
			later 1
			GO.QUOTA_RO q 2 100 = [0 2 1 -1 100]
			GO.QUOTA q 2 100 = [0 2 1 -1 100]
			EXPIRE q 0 = 1
			GO.QUOTA q 2 100 = [0 2 1 -1 100]`},
		{"keys that move", `
			GO.QUOTA q 2 100 = [0 2 1 -1 100]
			RENAME q r = OK
			COPY r s REPLACE = 1
			GO.QUOTA r 2 100 = [0 2 0 -1 100]
			GO.QUOTA s 2 100 0 = [0 2 1 -1 100]
			GO.QUOTA q 2 100 0 = [0 2 2 -1 0]
			SWAPDB 0 1 = OK
			GO.INFO r = <nil>`},
		{"a foreign field", `
			GO.THROTTLE t 4 1 60 = [0 5 4 -1 60]
			HSET t x 1 = 1
			GO.THROTTLE t 4 1 60 = -ERR
			HDEL t x = 1
			GO.THROTTLE t 4 1 60 = [0 5 3 -1 120]`},
	} {
		m := newModel()
		m.now, m.wall = begin, begin
		m.rules = parsePolicies("p THROTTLE 1 1 60s; s SHADOW QUOTA 2 60s")
		for line := range strings.Lines(strings.TrimSpace(c.lines)) {
			call, reply, _ := strings.Cut(strings.TrimSpace(line), " = ")
			w := strings.Fields(call)
			switch {
			case w[0] == "later":
				n, _ := integer(w[1], 0, 1<<40)
				m.now += funnel.Micros(n * millisecond)
				m.wall = m.now
			case strings.HasPrefix(w[0], "GO."):
				want := m.call(0, w, false)
				if !want.fits(reply) || want.any {
					t.Errorf("%s: %s: %s, want %s", c.name, call, want.String(), reply)
				}
				want.commit()
			default:
				if what := m.foreign(0, w, reply); what != "" {
					t.Errorf("%s: %s: %s", c.name, call, what)
				}
			}
		}
	}
}

// A wrong word is an error, whatever the key holds; nothing changes.
func TestParse_wrongWords(t *testing.T) {
	for _, call := range []string{"GO.THROTTLE k 1 1", "GO.THROTTLE k x 1 1", "GO.THROTTLE k -1 1 1", "GO.THROTTLE k 1 0 1", "GO.THROTTLE k 1 1 3153600001",
		"GO.THROTTLE k 1 1 1 1 1", "GO.THROTTLE k 1 1 1 UPTO FORCE", "GO.THROTTLE k 1 1 1 MS MS", "GO.THROTTLE k 1 1 1 RESERVE", "GO.THROTTLE k 1 1 1 LOCKOUT 0",
		"GO.THROTTLE k 999999999999 1 3153600000", "GO.THROTTLE k 1 1 1 EXACT", "CL.THROTTLE k 1 1 1 1 MS", "CL.THROTTLE k 1 1000000001 1",
		"GO.WINDOW k 0 1", "GO.WINDOW k 1 1 RESERVE 1", "GO.QUOTA k 1 1 ALIGN", "GO.QUOTA k 1 1 ALIGN 3153600001", "GO.QUOTA k 1 1 9223372036854775808",
		"GO.LEASE k 1 0 a", "GO.LEASE k 1 1 a UPTO", "GO.LEASE k 1 1 " + strings.Repeat("x", 513), "GO.RELEASE k " + strings.Repeat("x", 513),
		"GO.ALL k MS THROTTLE 1 1 1", "GO.ALL k THROTTLE 1 1 1 KEY", "GO.ALL k LEASE 1 1 a FORCE", "GO.ALL k QUOTA 1 1 x", "GO.ALL k WINDOW 1 1 EXACT EXACT",
		"GO.ALL k" + strings.Repeat(" THROTTLE 1 1 1", 33), "GO.POLICY p:1 -1", "GO.POLICY p:1 1 FORCE", "GO.TOP 0", "GO.TOP RESET 5", "GO.INFO a b"} {
		if _, ok := parse(strings.Fields(call), parsePolicies("p QUOTA 1 1s")); ok {
			t.Errorf("%s is in order", call)
		}
	}
}

// An effect that comes twice, or before its time, is found in an AOF.
func TestWrongEffect(t *testing.T) {
	for _, c := range []struct {
		commands string
		wrong    bool
	}{
		{"MULTI;HSET k 0 1;PEXPIREAT k 5;EXEC", false},
		{"MULTI;HSET k 0 1;HSET k 0 1;EXEC", true},
		{"HSET k 0 1;HSET k 0 1", false},
		{"MULTI;ZADD k 1 a;ZREM k \x01b;EXEC", false},
		{"MULTI;ZREM k \x01b;ZADD k 1 a;EXEC", true},
		{"MULTI;ZREM k \x02b;ZADD k 1 a;EXEC", false},
	} {
		b := ""
		for line := range strings.SplitSeq(c.commands, ";") {
			w := strings.Fields(line)
			b += "*" + string(rune('0'+len(w))) + "\r\n"
			for _, word := range w {
				b += "$" + string(rune('0'+len(word))) + "\r\n" + word + "\r\n"
			}
		}
		n, what := wrongEffect([]byte(b + "*2\r\n$3\r\nDE"))
		if n != len(b) || (what != "") != c.wrong {
			t.Errorf("%q: %d of %d bytes, %q", c.commands, n, len(b), what)
		}
	}
}

// A warning of the module and a crash of the server are found in a log.
func TestWarning(t *testing.T) {
	for text, want := range map[string]string{
		"1:M 1 Jan # Server initialized\n1:M 1 Jan * <gothrottle> fine": "",
		"1:M 1 Jan # <gothrottle> x\ny":                                 "1:M 1 Jan # <gothrottle> x",
		"a\n1:M # <gothrottle> gothrottle cannot be unloaded: a":        "",
		"a\n=== REDIS BUG REPORT START: x\n":                            "=== REDIS BUG REPORT START: x",
	} {
		file := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := warning(file); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// The module's clock goes on at half speed after the server's was set back.
func TestModuleClock(t *testing.T) {
	var c moduleClock
	for i, s := range []struct {
		wall funnel.Micros
		mono int64
		want funnel.Micros
	}{{1000, 0, 1000}, {2000, 10, 2000}, {500, 10, 2000}, {510, 30, 2010}, {2005, 40, 2015}, {2030, 50, 2030}, {2040, 60, 2040}} {
		if got := c.tell(s.wall, s.mono); got != s.want {
			t.Errorf("step %d: %d, want %d", i, got, s.want)
		}
	}
}
