package main

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gothrottle/tests/server"
)

// counts are what cachegrind counts, with a first-level cache of 32 KB for instructions, and how it says that.
var counts = map[string]string{"instructions/op": `I\s+refs:`, "I1-misses/op": `I1\s+misses:`}

// bound is what a count may be, times the committed one.
const bound = 1.1

// count returns what a call executes and misses: the difference between a server that gets 6,000 calls and one that gets 2,000:
// the first ones make the server's tables grow.
func count[B testing.TB](b B, program string, r row) map[string]float64 {
	figures := map[string]float64{}
	r.paced = 0
	for _, calls := range []int{-2000, 6000} {
		// Periodic work of the server would count more on a busy machine. So there is little of it.
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
			found := regexp.MustCompile(line+`\s+([0-9,]+)`).FindAllStringSubmatch(s.Log(), -1)
			if found == nil {
				b.Fatalf("valgrind does not say %s\n%s", line, server.Tail(s.Log(), 20))
			}
			// The last one is the server's: a script that starts it has run other programs.
			n, err := strconv.ParseFloat(strings.ReplaceAll(found[len(found)-1][1], ",", ""), 64)
			s.no(err)
			figures[unit] += math.Copysign(n, float64(calls)) / 4000
		}
	}
	return figures
}

func BenchmarkCachegrind(b *testing.B) {
	longPeriod(b)
	each(b, slices.DeleteFunc(rows(""), func(r row) bool { return r.times > 1 }), count[*testing.B])
}

// longPeriod sees to it that nothing leaves a window.
func longPeriod(b testing.TB) {
	b.Cleanup(func() { period = time.Second })
	period = time.Hour
}

// variants are rows of which others have most of the work.
var variants = regexp.MustCompile(` with |10\^|counted|all keys|locked out|hot key|INFO|_RO`)

// No count of gothrottle's rows is above the bound, for the same series of a server: all rows if CHECK is all, else those that
// aren't variants on the oldest server, and two on the others. Other work on the machine adds to a count, so the least of three
// is taken.
func TestCachegrind_bounds(t *testing.T) {
	if os.Getenv("CHECK") == "" {
		t.Skip("make test-bench counts")
	}
	committed, err := readFigures("results/instructions.txt")
	if err != nil {
		t.Fatal(err)
	}
	longPeriod(t)
	rowsCounted := 0
	for program := range strings.FieldsSeq(os.Getenv("SERVERS")) {
		name := serverName(t, program)
		series := func(name string) string { return name[:strings.LastIndexByte(name, '.')] }
		for _, r := range rows("") {
			oldest, first := strings.HasPrefix(name, "Redis 7.0"), r.name == "GO.THROTTLE" || r.name == "GO.THROTTLE denied"
			if os.Getenv("CHECK") != "all" && !first && (!oldest || variants.MatchString(r.name)) {
				continue
			}
			bounds := map[string]float64{}
			for _, server := range committed.servers {
				for unit := range counts {
					if n := committed.of(server, line{"Cachegrind", r.name, unit}).hi; series(server) == series(name) && n > 0 {
						bounds[unit] = bound * n
					}
				}
			}
			if (strings.HasPrefix(r.name, "GO.") || strings.HasPrefix(r.name, "script: ")) && len(bounds) > 0 {
				rowsCounted++
				t.Run(name+"/"+r.name, func(t *testing.T) {
					t.Parallel()
					within(t, program, r, bounds)
				})
			}
		}
	}
	if rowsCounted == 0 {
		t.Error("results/instructions.txt has no counts of these servers")
	}
}

// within counts until all counts are within their bounds, three times at most.
func within(t *testing.T, program string, r row, bounds map[string]float64) {
	above := []string{"not counted"}
	for try := 0; try < 3 && len(above) > 0; try++ {
		above = nil
		for unit, n := range count(t, program, r) {
			if n > bounds[unit] || n <= 0 {
				above = append(above, fmt.Sprintf("%s: %.1f %s, and 0 to %.1f are the bounds", r.name, n, unit, bounds[unit]))
			}
		}
	}
	if len(above) > 0 {
		t.Error(strings.Join(above, "\n"))
	}
}
