package commands

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
)

// The figures of docs/choosing.md are those of docs/benchmarks.md, of the server that stands first there.
func TestChoosing_figures(t *testing.T) {
	measured := map[string]string{}
	for _, row := range readPage(t, "../docs/benchmarks.md").section(t, "CPU").tables("") {
		measured[row[0]] = row[1]
	}
	prose := readPage(t, "../docs/choosing.md").prose()
	figures := regexp.MustCompile(`([0-9.]+) µs[^("]*\("([^"]+)"\)`).FindAllStringSubmatch(prose, -1)
	if len(figures) != 14 {
		t.Errorf("the page has %d figures", len(figures))
	}
	for _, figure := range figures {
		n, err := strconv.ParseFloat(measured[figure[2]], 64)
		if err != nil {
			t.Errorf("%s: not measured: %v", figure[2], err)
		} else if want := fmt.Sprintf("%.1f", n); figure[1] != want {
			t.Errorf("%s: %s, the bench says %s", figure[2], figure[1], want)
		}
	}
}
