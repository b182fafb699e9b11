package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// The table of the server's functions holds no function that nobody calls: a server that lacks it
// could not load the module, for no reason.
func TestAPI_everyFunctionIsUsed(t *testing.T) {
	table, err := os.ReadFile("../cgo/api.h")
	if err != nil {
		t.Fatal(err)
	}
	sources, err := filepath.Glob("../cgo/*.c")
	if err != nil {
		t.Fatal(err)
	}
	called := map[string]bool{}
	for _, name := range sources {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\bapi\.(\w+)`).FindAllSubmatch(text, -1) {
			called[string(m[1])] = true
		}
	}
	rows := regexp.MustCompile(`X\((?:REQUIRED|OPTIONAL), "[0-9.]+", [\w *]+, (\w+),`).FindAllSubmatch(table, -1)
	if len(rows) < 40 {
		t.Fatalf("only %d functions found", len(rows))
	}
	for _, m := range rows {
		if name := string(m[1]); !called[name] {
			t.Errorf("%s is not called", name)
		}
	}
}
