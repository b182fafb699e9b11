package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// docs has what the code draws and nothing else, and the page says how many calls of the burst and of the overload each
// limiter admits.
func TestPictures(t *testing.T) {
	text, err := os.ReadFile("../../docs/choosing.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../docs/choosing-*")
	if err != nil || len(files) != len(pictures()) {
		t.Errorf("docs has %d pictures, the code draws %d: %v", len(files), len(pictures()), err)
	}
	for _, p := range pictures() {
		if svg, err := os.ReadFile("../../docs/" + p.file); err != nil || string(svg) != p.draw().String()+"</svg>\n" {
			t.Errorf("docs/%s is not what the code draws (%v): run go -C bench run ./choosing ../docs", p.file, err)
		}
		burst, overload := 0, 0
		for _, c := range p.calls {
			if c.outcome != denied && c.at == burstAt {
				burst++
			} else if c.outcome != denied && c.at >= overloadAt && c.at < overloadEnds {
				overload++
			}
		}
		_, section, found := strings.Cut(string(text), "("+p.file+")\n")
		section, _, _ = strings.Cut(section, "\n## ")
		want := fmt.Sprintf("Admitted: %d of the burst's 16 calls, %d of the overload's 40.", burst, overload)
		if !found || !strings.Contains(strings.Join(strings.Fields(section), " "), want) {
			t.Errorf("%s: the page does not show it and say %q", p.file, want)
		}
	}
}
