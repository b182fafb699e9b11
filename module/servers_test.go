package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// serverRow is a row of build/servers.txt.
type serverRow struct {
	name, suite, more, program, version, kind string
	major, minor                              int
}

// readServers returns the rows of build/servers.txt by program, "Redis" or "Valkey", oldest version first.
func readServers(t *testing.T) map[string][]serverRow {
	t.Helper()
	all := map[string][]serverRow{}
	for _, line := range readLines(t, "build/servers.txt") {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if len(fields) != 6 {
			t.Fatalf("%q has %d fields", line, len(fields))
		}
		r := serverRow{name: fields[0], suite: fields[1], more: fields[2], version: fields[4], kind: fields[5]}
		r.program = map[string]string{"redis-server": "Redis", "valkey-server": "Valkey"}[fields[3]]
		if n, err := fmt.Sscanf(r.version, "%d.%d", &r.major, &r.minor); err != nil || n != 2 {
			t.Fatalf("%q: the version is no MAJOR.MINOR: %v", line, err)
		}
		all[r.program] = append(all[r.program], r)
	}
	for _, rows := range all {
		slices.SortFunc(rows, func(a, b serverRow) int { return cmp.Or(a.major-b.major, a.minor-b.minor) })
	}
	return all
}

// Suites that change at any time are not required, the others are. A server's name tells what it is.
func TestServers_list(t *testing.T) {
	servers := readServers(t)
	if len(servers["Redis"]) == 0 || len(servers["Valkey"]) == 0 || len(servers) != 2 {
		t.Fatalf("%v", servers)
	}
	for program, rows := range servers {
		for _, r := range rows {
			kind := "required"
			if r.suite == "sid" || r.more == "experimental" {
				kind = "moving"
			}
			if r.kind != kind {
				t.Errorf("%s of %s is %s, want %s", r.name, r.suite, r.kind, kind)
			}
			if want := strings.ToLower(program) + strings.ReplaceAll(r.version, ".", ""); r.name != want {
				t.Errorf("%s %s is named %s, want %s", program, r.version, r.name, want)
			}
		}
	}
}

// enumerate joins words as English does: "a, b and c".
func enumerate(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// The pages promise what is tested: the ranges begin with the oldest server of build/servers.txt and end with the newest
// major version. docs/stability.md names each version.
func TestServers_pagesNameWhatIsTested(t *testing.T) {
	var ranges, tested []string
	servers := readServers(t)
	for _, program := range []string{"Redis", "Valkey"} {
		rows := servers[program]
		ranges = append(ranges, fmt.Sprintf("%s %s to %d.x", program, rows[0].version, rows[len(rows)-1].major))
		var versions []string
		for _, r := range rows {
			versions = append(versions, r.version)
		}
		tested = append(tested, program+" "+enumerate(versions))
	}
	for page, promise := range map[string]string{
		"README.md":         "**Supported**: " + strings.Join(ranges, ", ") + ",",
		"docs/stability.md": "| " + strings.Join(ranges, ", ") + " | supported |",
	} {
		if text := readPage(t, page); !strings.Contains(text, promise) {
			t.Errorf("%s does not say %q", page, promise)
		}
	}
	stability := readPage(t, "docs/stability.md")
	if want := "`make test-servers` runs all tests on what Debian has: " + strings.Join(tested, ", ") + "."; !strings.Contains(stability, want) {
		t.Errorf("docs/stability.md does not say %q", want)
	}
	// The servers that were tested by hand are the same in both places.
	_, byHand, found := strings.Cut(strings.Join(readLines(t, "build/servers.txt"), " "), "The tests passed on ")
	byHand, _, _ = strings.Cut(byHand, ". #")
	if want := "The tests passed on Redis " + strings.Join(strings.Fields(strings.ReplaceAll(byHand, "#", "")), " ") + "."; !found || !strings.Contains(stability, want) {
		t.Errorf("docs/stability.md does not say %q", want)
	}
}

// readPage returns a page with its line ends as spaces.
func readPage(t *testing.T, page string) string {
	t.Helper()
	return strings.Join(readLines(t, page), " ")
}
