package commands

import (
	"strings"
	"testing"
)

// No reply shows it: long names have checksums that separate them, so that the names need not be compared one with
// another.
func TestChecksum(t *testing.T) {
	for _, n := range []int{256, 10_000} {
		name := strings.Repeat("x", n)
		if checksum(name) != checksum(strings.Clone(name)) || checksum(name) == checksum(name[1:]+"y") {
			t.Errorf("names of %d bytes", n)
		}
	}
}
