package fakehost

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// No transcript sees the host's own sources: every function of the API counts its calls, and the host itself calls none of them.
func TestAPICalls_everyFunction(t *testing.T) {
	files, err := filepath.Glob("*.c")
	if err != nil {
		t.Fatal(err)
	}
	var host string
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		host += string(text)
	}
	for _, f := range Functions() {
		if n := strings.Count(host, "    CALLED("+f.Name+");\n"); n != 1 {
			t.Errorf("%s counts %d times", f.Name, n)
		}
		if n := strings.Count(host, "fake_"+f.Name+"("); n != 1 {
			t.Errorf("fake_%s occurs %d times in the host", f.Name, n)
		}
	}
}
