package main

import (
	"os"
	"strings"
	"testing"
)

// The script is what its parts make, and a person can read them: no part is long, and no line wide.
func TestScript(t *testing.T) {
	want, err := join("../src", "../../commands/codes.go")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../gothrottle.lua")
	if err != nil || string(text) != want {
		t.Fatalf("script/gothrottle.lua isn't what its parts make: run go generate ./script (%v)", err)
	}
	if n := strings.Count(want, "\n"); n > 2105 {
		t.Errorf("the script has %d lines", n)
	}
	for _, part := range parts {
		text, err := os.ReadFile("../src/" + part + ".lua")
		if n := strings.Count(string(text), "\n"); err != nil || n > 200 {
			t.Errorf("%s has %d lines, %v", part, n, err)
		}
		for line := range strings.Lines(string(text)) {
			if len(line) > 140 {
				t.Errorf("%s has a line of %d bytes: %s", part, len(line), line)
			}
		}
	}
	files, err := os.ReadDir("../src")
	if err != nil || len(files) != len(parts) {
		t.Errorf("src has %d files and the script %d parts: %v", len(files), len(parts), err)
	}
}
