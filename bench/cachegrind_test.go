package main

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"gothrottle/bench/report"
	"gothrottle/tests/server"
)

// counts are what cachegrind counts, with a first-level cache of 32 KB for instructions and one for data, and how it says that.
var counts = map[string]string{"instructions/op": `I\s+refs:`, "I1-misses/op": `I1\s+misses:`, "D1-misses/op": `D1\s+misses:`}

// count returns what a call executes and misses: the difference between a server that gets 12,000 calls and one that gets 4,000.
// Nothing leaves a window, because its period is an hour.
func count[B testing.TB](b B, program string, r row) map[string]float64 {
	figures := map[string]float64{}
	defer func(p time.Duration) { period = p }(period)
	period, r.paced = time.Hour, 0
	for _, calls := range []int{-4000, 12_000} {
		// What the server does from time to time would count more on a busy machine. So there is little of it.
		s := open(b, program, r, 2000, server.Options{Before: []string{"valgrind", "--tool=cachegrind", "--cache-sim=yes", "--I1=32768,8,64",
			"--D1=32768,8,64", "--LL=33554432,16,64", "--trace-children=yes", "--cachegrind-out-file=/dev/null"},
			Args: []string{"--enable-debug-command", "yes", "--hz", "1", "--dynamic-hz", "no"}})
		s.no(s.Client.Do(ctx, "DEBUG", "SET-ACTIVE-EXPIRE", "0").Err())
		if r.warm != "" && !strings.Contains(r.warm, "{phase}") {
			s.visit(r.warm, s.keys, s.keys)
		}
		s.visit(s.call, s.keys, max(calls, -calls))
		s.Terminate()
		for unit, line := range counts {
			found := regexp.MustCompile(line + `\s+([0-9,]+)`).FindStringSubmatch(s.Log())
			if found == nil {
				b.Fatalf("valgrind does not say %s\n%s", line, server.Tail(s.Log(), 20))
			}
			n, err := strconv.ParseFloat(strings.ReplaceAll(found[1], ",", ""), 64)
			s.no(err)
			figures[unit] += math.Copysign(n, float64(calls)) / 8000
		}
	}
	return figures
}

func BenchmarkCachegrind(b *testing.B) { each(b, rows(""), count[*testing.B]) }

// No count of gothrottle's rows is more than 10 % above the one in results, for the same version of a server. What else a machine
// does only adds to a count, so the least of three is taken.
func TestCachegrind_bounds(t *testing.T) {
	if os.Getenv("CHECK") != "1" {
		t.Skip("make test-all counts")
	}
	committed, err := report.Read("results/instructions.txt")
	if err != nil {
		t.Fatal(err)
	}
	for program := range strings.FieldsSeq(os.Getenv("SERVERS")) {
		name, counted := serverName(t, program), 0
		for _, r := range rows("") {
			if !strings.HasPrefix(r.name, "GO.") || committed.Of(name, "Cachegrind", r.name, "D1-misses/op") == nil {
				continue
			}
			counted++
			var above []string
			for try := 0; try < 3 && (try == 0 || above != nil); try++ {
				above = nil
				for unit, n := range count(t, program, r) {
					if bound := 1.1 * committed.Of(name, "Cachegrind", r.name, unit)[0]; n > bound {
						above = append(above, fmt.Sprintf("%s: %.1f %s, and %.1f is the bound", r.name, n, unit, bound))
					}
				}
			}
			if above != nil {
				t.Error(strings.Join(above, "\n"))
			}
		}
		if counted == 0 {
			t.Errorf("results/instructions.txt has no counts of %s", name)
		}
	}
}
