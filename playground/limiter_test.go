package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gothrottle/throttle/throttletest"
)

// sample has a limiter of each kind and option.
var sample = []Spec{
	{Kind: "throttle", Limit: 10, Count: 10, Period: 5000},
	{Kind: "throttle", Limit: 10, Count: 3, Period: 1500, Quantity: 2},
	{Kind: "throttle", Limit: 10, Count: 10, Period: 60_000, Mode: "upto", Quantity: 4},
	{Kind: "throttle", Limit: 10, Count: 10, Period: 3600_000, Mode: "force"},
	{Kind: "throttle", Limit: 1, Count: 1, Period: 1000, Mode: "reserve", Time: 2500},
	{Kind: "throttle", Limit: 5, Count: 5, Period: 1000, Mode: "lockout", Time: 10_000},
	{Kind: "window", Limit: 10, Period: 5000, Exact: true},
	{Kind: "window", Limit: 10, Period: 5000, Mode: "force", Quantity: 3},
	{Kind: "quota", Limit: 10, Period: 5000, Align: true},
	{Kind: "quota", Limit: 10, Period: 5000, Mode: "upto"},
	{Kind: "all", Clauses: []Spec{{Kind: "throttle", Limit: 5, Count: 5, Period: 1000}, {Kind: "throttle", Limit: 50, Count: 50, Period: 60_000}, {Kind: "window", Limit: 20, Period: 10_000, Quantity: 2}}},
	{Kind: "all", Mode: "force", Clauses: []Spec{{Kind: "quota", Limit: 20, Period: 10_000}}},
	{Kind: "policy", Policy: "playground-login"},
	{Kind: "policy", Policy: "playground-login", Quantity: 2},
}

var samplePolicies = playgroundPolicies(policies)

// Each kind is asked by package throttle, and the words of the page are those of the wire.
func TestLane_asksEachKind(t *testing.T) {
	for _, spec := range sample {
		require.NoError(t, spec.check(samplePolicies))
		s, _ := openSession(t)
		require.NoError(t, s.SetLanes(t.Context(), []Spec{spec}))
		l := s.lanes[0]
		before := l.CLI
		s.Call(t.Context(), 0)
		require.Equal(t, l.CLI, before, "the line that was shown before the call")
		require.Empty(t, l.Error, "%+v", spec)
		require.EqualValues(t, 1, l.Admitted, "%+v", spec)
		require.Contains(t, l.CLI, " "+command(spec)+" "+l.keys[0])
		require.Contains(t, l.CLI, " MS")
		require.Equal(t, "limited", l.Words[0].Name)
		require.Equal(t, "admitted", l.Words[0].Says)
		last := s.points[len(s.points)-1]
		require.Equal(t, "admitted", last.Call)
		require.Len(t, last.Left, max(len(spec.Clauses), 1))
	}
}

func command(s Spec) string { return "GO." + strings.ToUpper(s.Kind) }

// openSession returns a session over a server in memory.
func openSession(t *testing.T) (*Session, *throttletest.Server) {
	t.Helper()
	server := throttletest.NewServer()
	require.NoError(t, server.SetPolicies(policies))
	s, err := newSession("5e55", "redis-cli", nil, server)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.client.Close() })
	return s, server
}

// The lines of Go that the page shows compile.
func TestGoLine_compiles(t *testing.T) {
	var body strings.Builder
	body.WriteString("package main\n\nimport (\n\t\"context\"\n\t\"time\"\n\n\t\"gothrottle/throttle\"\n)\n\nvar _ = time.Second\n\nfunc shown(ctx context.Context, client *throttle.Client) {\n")
	for _, spec := range sample {
		require.NoError(t, spec.check(samplePolicies))
		body.WriteString("\t_, _ = " + spec.goLine("user:42") + "\n")
	}
	body.WriteString("}\n")
	folder := t.TempDir()
	file, overlay := filepath.Join(folder, "shown.go"), filepath.Join(folder, "overlay.json")
	here, err := os.Getwd()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, []byte(body.String()), 0o644))
	require.NoError(t, os.WriteFile(overlay, []byte(`{"Replace":{"`+filepath.Join(here, "shown.go")+`":"`+file+`"}}`), 0o644))
	out, err := exec.Command("go", "build", "-overlay", overlay, "-o", os.DevNull, ".").CombinedOutput()
	require.NoError(t, err, "%s\n%s", out, body.String())
}

// Limits that are out of bounds are refused with a sentence that names the number.
func TestSpec_checkRefuses(t *testing.T) {
	good := Spec{Kind: "throttle", Limit: 10, Count: 10, Period: 5000}
	for want, change := range map[string]func(*Spec){
		"limit must":                       func(s *Spec) { s.Limit = 1001 },
		"count must":                       func(s *Spec) { s.Count = 0 },
		"period must":                      func(s *Spec) { s.Period = 99 },
		"quantity must":                    func(s *Spec) { s.Quantity = -1 },
		"no option \"exact\"":              func(s *Spec) { s.Mode = "exact" },
		"the time of reserve":              func(s *Spec) { s.Mode = "reserve" },
		"no limiter of kind \"cl\"":        func(s *Spec) { s.Kind = "cl" },
		"no policy \"other\"":              func(s *Spec) { s.Kind, s.Policy = "policy", "other" },
		"number of clauses":                func(s *Spec) { s.Kind = "all" },
		"a clause is a throttle":           func(s *Spec) { *s = Spec{Kind: "all", Clauses: []Spec{{Kind: "policy"}}} },
		"clause 1: limit must":             func(s *Spec) { *s = Spec{Kind: "all", Clauses: []Spec{{Kind: "quota", Period: 100}}} },
		"window has no option \"reserve\"": func(s *Spec) { s.Kind, s.Mode = "window", "reserve" },
	} {
		s := good
		change(&s)
		require.ErrorContains(t, s.check(samplePolicies), want)
	}
	require.NoError(t, good.check(nil))
}

// Words that a shell would change are quoted.
func TestCLILine(t *testing.T) {
	require.Equal(t, `redis-cli -p 7 GO.ALL a:1 '{b}' 'it'\''s' '' 5`, cliLine("redis-cli -p 7", []string{"GO.ALL", "a:1", "{b}", "it's", "", "5"}))
}

// The integers of a reply are told in words.
func TestInWords(t *testing.T) {
	says := func(s Spec, ints ...int64) (text []string) {
		for _, w := range s.inWords(Reply{Ints: ints}) {
			text = append(text, w.Name+": "+w.Says)
		}
		return text
	}
	require.Equal(t, []string{"limited: denied", "limit: 10 units at once", "remaining: 0 units left after this call",
		"retry_after: the same call is admitted after 487 ms", "reset_after: nothing is in use after 1.5 s"}, says(Spec{}, 1, 10, 0, 487, 1500))
	require.Contains(t, says(Spec{}, 1, 10, 10, -1, 0), "retry_after: never: the quantity is above the limit")
	require.Contains(t, says(Spec{Mode: "upto"}, 0, 10, 0, 500, 90_000, 3), "granted: 3 units taken")
	require.Contains(t, says(Spec{Mode: "reserve"}, 0, 1, 0, -1, 90_000, 700), "wait: act after 700 ms")
	require.Contains(t, says(Spec{Kind: "all"}, 0, 1, 0, -1, 60_000, 1), "index: limiter 2 decides")
	require.Contains(t, says(Spec{Kind: "window", Period: 1500}, 0, 4, 0, -1, 1500), "limit: 4 units in any 1.5 s")
	require.Contains(t, says(Spec{Kind: "quota"}, 0, 1, 0, -1, 1500), "limit: 1 unit per window")
	require.Contains(t, says(Spec{}, 0, 1, 0, -1, 60_000), "reset_after: nothing is in use after 1 min")
	require.Empty(t, says(Spec{}))
}
