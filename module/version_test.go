package main

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"gothrottle/cgo"
	"gothrottle/commands"
)

// A version that is not yet in the changelog is the one that the newest commands name, and no
// command is newer than the module.
func TestVersion_isReleasedOrThatOfTheNewestCommand(t *testing.T) {
	newest := 0
	for _, row := range commands.Table {
		newest = max(newest, number(t, row.Since))
	}
	version := number(t, cgo.Version)
	released := slices.ContainsFunc(readLines(t, "CHANGELOG.md"), func(line string) bool {
		return strings.HasPrefix(line, "## "+cgo.Version)
	})
	if version < newest || version > newest && !released {
		t.Errorf("the module is version %s, which the changelog does not have; the newest command has another version", cgo.Version)
	}
}

// number turns three numbers below 100 into one that can be compared.
func number(t *testing.T, version string) (n int) {
	t.Helper()
	parts := strings.Split(version, ".")
	if len(parts) != 3 {
		t.Fatalf("version %q", version)
	}
	for _, part := range parts {
		i, err := strconv.Atoi(part)
		if err != nil || i < 0 || i > 99 {
			t.Fatalf("version %q", version)
		}
		n = n*100 + i
	}
	return n
}
