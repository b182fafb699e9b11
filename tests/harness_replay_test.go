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

	"github.com/stretchr/testify/require"
)

// recorded is one case of testdata/*.jsonl: commands and the replies of redis-cell 0.5.0.
// The tags of a case name the reasons for which gothrottle may differ.
type recorded struct {
	Name     string
	Setup    [][]word // sent on connection 0; the replies are ignored
	Steps    []step
	Teardown [][]word
	Tags     []string
}

type step struct {
	Cmd          []word
	Sleep        int64  `json:"sleep_ms_before"`
	Conn         int    // number of the connection; 0 by default
	Kind         string `json:"reply_kind"`
	Reply        any
	TolS         int64   `json:"tol_s"`         // on retry_after and reset_after
	TolRemaining int64   `json:"tol_remaining"` // on remaining
	Match        string  // range, now_plus_ms, prefix, regex; empty for equality
	Range        []int64 // bounds for match range and now_plus_ms
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

var (
	ourNames   = []string{"CL.THROTTLE", "GO.THROTTLE"}
	theirNames = regexp.MustCompile(`(?i)\bcl\.throttle\b`)
)

// under replaces CL.THROTTLE in text with another name. Each letter keeps its case.
func under(name, text string) string {
	return theirNames.ReplaceAllStringFunc(text, func(found string) string {
		b := []byte(found)
		for i := range b {
			b[i] = name[i] | b[i]&0x20
		}
		return string(b)
	})
}

func (r *recorded) sleeps() bool {
	return slices.ContainsFunc(r.Steps, func(s step) bool { return s.Sleep > 0 })
}

// hold replays a case and fails if a reply differs. Replies depend on the time between steps.
// If a busy machine made the case take too long, hold replays the case, at most 30 times.
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
		if late := time.Since(began) - nominal; late < stretched || attempt == 30 {
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

// compare returns an error if a reply differs from the recorded reply. Texts of errors are
// not compared, nor are texts that a script took from an error.
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

// equal says whether a value of a reply equals the recorded value.
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

// near says whether item i of five integers is within its tolerance. -1 means never, so no
// tolerance lets -1 match a length of time.
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
