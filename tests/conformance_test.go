package tests

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// recorded is one case of testdata/*.jsonl: commands and the replies that redis-cell
// 0.5.0 gave (or, where the case says so, that ours differ in on purpose).
type recorded struct {
	Name     string
	Setup    [][]word // on connection 0, replies ignored
	Steps    []step
	Teardown [][]word
	Tags     []string
}

type step struct {
	Cmd          []word
	Sleep        int64  `json:"sleep_ms_before"`
	Conn         int    // 0 unless given
	Kind         string `json:"reply_kind"`
	Reply        any
	TolS         int64   `json:"tol_s"`         // on retry_after and reset_after
	TolRemaining int64   `json:"tol_remaining"` // on remaining
	Match        string  // range, now_plus_ms, prefix, regex; else equality
	Range        []int64 // of match range and now_plus_ms
}

// word is one argument: a string, a number, or {"hex": ".."} for bytes.
type word string

func (w *word) UnmarshalJSON(b []byte) error {
	var v any
	if err := decode(string(b), &v); err != nil {
		return err
	}
	if m, ok := v.(map[string]any); ok {
		raw, err := hex.DecodeString(m["hex"].(string))
		*w = word(raw)
		return err
	}
	*w = word(fmt.Sprint(v))
	return nil
}

// decode reads JSON and keeps numbers exact.
func decode(text string, v any) error {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	return d.Decode(v)
}

func readRecorded(t *testing.T, file string, want int) []recorded {
	t.Helper()
	f, err := os.Open("testdata/" + file)
	require.NoError(t, err)
	defer f.Close()
	var all []recorded
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var r recorded
		require.NoError(t, decode(lines.Text(), &r), "line %d", len(all)+1)
		all = append(all, r)
	}
	require.NoError(t, lines.Err())
	require.Len(t, all, want)
	return all
}

// differs says why a case is not promised to hold for a command, "" if it is.
func (r *recorded) differs(name string) string {
	for _, tag := range []string{
		"quirk",      // a redis-cell bug or an odd choice
		"overflow",   // its 64-bit numbers wrap
		"f64",        // its float division rounds
		"internal",   // its encoding
		"introspect", // its COMMAND INFO
	} {
		if slices.Contains(r.Tags, tag) {
			return tag
		}
	}
	if strings.HasPrefix(r.Name, "store-") {
		return "its value is a string, ours a hash"
	}
	return exceptions[name][r.Name]
}

// exceptions lists further cases that do not hold for GO.THROTTLE, each with its reason.
// For CL.THROTTLE there are none.
var exceptions = map[string]map[string]string{"GO.THROTTLE": {
	"multi-exec-errors-inside": "a call with too few words is refused when it is queued, as the " +
		"server does for its own commands: that comes with an arity, and redis-cell has none",
	"zero-rate-count-beyond-ns": "more than one unit per ns is a rate like any other; redis-cell cuts its interval to 0",
}}

// checked is how many of the 213 cases hold: a new exclusion must be counted here.
const checked = 213 - 50

var (
	ourNames   = []string{"CL.THROTTLE", "GO.THROTTLE"}
	theirNames = regexp.MustCompile(`(?i)\bcl\.throttle\b`)
)

// under puts the command under test in the place of redis-cell's, in the same case.
func under(name, text string) string {
	return theirNames.ReplaceAllStringFunc(text, func(found string) string {
		b := []byte(found)
		for i := range b {
			b[i] = name[i] | b[i]&0x20
		}
		return string(b)
	})
}

func TestConformance_redisCellCasesHold(t *testing.T) {
	cases := readRecorded(t, "redis-cell.jsonl", 213)
	for _, name := range ourNames {
		t.Run(name, func(t *testing.T) {
			s := start(t, options{})
			held := 0
			for _, r := range cases {
				if r.differs(name) != "" {
					continue
				}
				held++
				t.Run(r.Name, func(t *testing.T) {
					if r.sleeps() {
						t.Parallel() // it mostly waits
					}
					r.hold(t, s, name)
				})
			}
			assert.Equal(t, checked-len(exceptions[name]), held, "cases that hold")
		})
	}
}

func TestConformance_crashersAreAnswered(t *testing.T) {
	for _, name := range ourNames {
		t.Run(name, func(t *testing.T) {
			s := start(t, options{})
			for _, r := range readRecorded(t, "crashers.jsonl", 18) {
				t.Run(r.Name, func(t *testing.T) {
					if err := r.replay(s, name, t); err != nil {
						t.Error(err)
					}
					require.Equal(t, "PONG", s.Ping(ctx).Val())
				})
			}
		})
	}
}

func (r *recorded) sleeps() bool {
	return slices.ContainsFunc(r.Steps, func(s step) bool { return s.Sleep > 0 })
}

// hold replays a case and fails if a reply differs. Replies depend on the time
// between steps: a case that a busy machine stretched proves nothing and is replayed.
func (r *recorded) hold(t *testing.T, s *server, name string) {
	t.Helper()
	const stretched = 60 * time.Millisecond
	var nominal time.Duration
	for _, st := range r.Steps {
		nominal += time.Duration(st.Sleep) * time.Millisecond
	}
	for attempt := 1; ; attempt++ {
		began := time.Now()
		err := r.replay(s, name, t)
		if err == nil {
			return
		}
		if late := time.Since(began) - nominal; late < stretched || attempt == 5 {
			t.Fatal(err)
		}
	}
}

func (r *recorded) replay(s *server, name string, t *testing.T) error {
	t.Helper()
	conns := map[int]*wire{}
	do := func(conn int, cmd []word) any {
		if conns[conn] == nil {
			conns[conn] = s.wireFor(t)
		}
		words := make([]any, len(cmd))
		for i, w := range cmd {
			words[i] = under(name, string(w))
		}
		return conns[conn].do(words...)
	}
	for _, cmd := range r.Setup {
		do(0, cmd)
	}
	defer func() {
		for _, cmd := range r.Teardown {
			do(0, cmd)
		}
		for _, w := range conns {
			w.conn.Close()
		}
	}()
	for i, st := range r.Steps {
		time.Sleep(time.Duration(st.Sleep) * time.Millisecond)
		got := do(st.Conn, st.Cmd)
		if err := st.compare(got, s.now); err != nil {
			return fmt.Errorf("step %d: %q: %w", i, st.Cmd, err)
		}
	}
	return nil
}

// compare says how a reply differs from the recorded one. An error is an error,
// whatever its text; so is a text that a script took from an error.
func (st *step) compare(got any, now func() int64) error {
	mismatch := fmt.Errorf("got %#v, want %s %v %s %v", got, st.Kind, st.Reply, st.Match, st.Range)
	kinds := map[string]bool{
		"array": is[[]any](got), "error": is[wireError](got), "int": is[int64](got), "bulk": is[string](got),
		"status": is[status](got), "nil": got == nil, "any": true,
	}
	if known := kinds[st.Kind]; !known {
		return mismatch
	}
	var ok bool
	switch {
	case st.Kind == "error" || st.Kind == "nil" || st.Kind == "any":
		ok = true
	case st.Match == "range" || st.Match == "now_plus_ms":
		n, err := strconv.ParseInt(fmt.Sprint(got), 10, 64)
		if st.Match == "now_plus_ms" {
			n = (n - now()) / int64(time.Millisecond)
		}
		ok = err == nil && len(st.Range) == 2 && n >= st.Range[0] && n <= st.Range[1]
	case st.Match == "prefix":
		ok = strings.HasPrefix(fmt.Sprint(got), st.Reply.(string))
	case st.Match == "regex":
		ok = regexp.MustCompile(st.Reply.(string)).MatchString(fmt.Sprint(got))
	case st.Match != "":
		return errors.New("unknown match " + st.Match)
	case st.Kind == "status":
		ok = got == status(st.Reply.(string))
	default:
		ok = st.equal(st.Reply, got)
	}
	if ok {
		return nil
	}
	return mismatch
}

func is[T any](v any) bool {
	_, ok := v.(T)
	return ok
}

var anErrorsText = regexp.MustCompile(`^[A-Z]+ .`)

// equal compares a recorded value with one of a reply.
func (st *step) equal(want, got any) bool {
	switch want := want.(type) {
	case nil:
		return got == nil
	case string:
		text, ok := got.(string)
		if strings.HasPrefix(want, "Cell error") {
			return ok && anErrorsText.MatchString(text)
		}
		return ok && text == want
	case json.Number:
		n, err := want.Int64()
		return err == nil && got == n
	case map[string]any:
		if s, ok := want["status"].(string); ok {
			return got == status(s)
		}
		return want["error"] != nil && is[wireError](got)
	case []any:
		all, ok := got.([]any)
		if !ok || len(all) != len(want) {
			return false
		}
		for i := range want {
			if !st.equal(want[i], all[i]) && !st.near(len(want), i, want[i], all[i]) {
				return false
			}
		}
		return true
	}
	return false
}

// near applies the tolerances to item i of five. No tolerance ever lets -1, which
// means never or not at all, match a length of time.
func (st *step) near(n, i int, want, got any) bool {
	w, ok := want.(json.Number)
	a, err := w.Int64()
	b, isInt := got.(int64)
	if n != 5 || !ok || err != nil || !isInt || (a == -1) != (b == -1) {
		return false
	}
	tolerance := [5]int64{2: st.TolRemaining, 3: st.TolS, 4: st.TolS}[i]
	return max(a-b, b-a) <= tolerance
}
