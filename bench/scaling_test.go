package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The page shows the figures of the data beside this test, and those of the simulation.
func TestScaling_pageShowsTheData(t *testing.T) {
	s, err := readScaling(scalingData)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/scaling.md")
	if err != nil {
		t.Fatal(err)
	}
	filled, err := fillPage(string(page), s.blocks())
	if err != nil {
		t.Fatal(err)
	}
	if filled != string(page) {
		t.Error("docs/scaling.md does not show bench/scaling.jsonl and the simulation: run make bench-scaling")
	}
	if strings.Contains(filled, "NaN") {
		t.Error("a figure was not measured")
	}
}

// What is measured can be sent, and is what the report looks for.
func TestScaling_groups(t *testing.T) {
	b := &bench{options: newOptions()}
	s := sampleScaling(t, b)
	rows := len(s.rows)
	s.blocks()
	if len(s.rows) != rows {
		t.Errorf("the report looks for %v", *s.rows[rows])
	}
	for _, g := range b.groups() {
		for _, l := range g.loads {
			op, err := compile(l.text, nil)
			if err != nil {
				t.Errorf("%s: %v", l.name, err)
				continue
			}
			complete(t, l.name, op.append(nil, blanksOf{keys: l.keys}, nil), op.replies)
		}
	}
}

// sampleScaling has a row for each load at each place, with one round.
func sampleScaling(t *testing.T, b *bench) *scaling {
	t.Helper()
	s := &scaling{scalingAbout: scalingAbout{Machine: "machine", Servers: []string{"A"}}}
	for _, g := range b.groups() {
		for _, p := range g.places {
			for _, l := range g.loads {
				before := []reading{{100, 90, 5}, {0, 0, 0}}
				after := []reading{{400, 290, 30}, {100, 90, 75}}
				s.row("A", p.name, l.name).add(before, after, tally{ops: 100, took: time.Second / 2})
			}
		}
	}
	return s
}

// The figures of a round are sums and shares over the servers.
func TestScaleRow_add(t *testing.T) {
	r := sampleScaling(t, &bench{options: newOptions()}).rows[0]
	if r.CPU[0] != 4 || r.Main[0] != 2.9 || r.Top[0] != 2 || r.Share[0] != 0.75 || r.Rate[0] != 200 {
		t.Errorf("%+v", r)
	}
}

func TestScaling_verdict(t *testing.T) {
	for _, test := range []struct {
		two, three float64
		want       string
	}{
		{1.04, 0.97, "within 4 %. The target is 5 %: met."},
		{1, 0.93, "within 7 %. The target is 5 %: missed."},
		{1.2, 1, "within 20 %. The target is 5 %: missed."},
	} {
		s := &scaling{scalingAbout: scalingAbout{Servers: []string{"A"}}}
		for place, cpu := range map[string]float64{"1": 1, "2": test.two, "3": test.three} {
			s.row("A", place, inTurn).CPU = []float64{cpu}
		}
		if got := s.verdict(); !strings.HasSuffix(got, test.want+"\n") {
			t.Errorf("%v: %s", test, got)
		}
	}
}

func TestFillPage(t *testing.T) {
	page := "a\n<!-- figures: x -->\nold\n<!-- end of figures -->\nb\n<!-- figures: y -->\n<!-- end of figures -->\n"
	want := "a\n<!-- figures: x -->\n1\n<!-- end of figures -->\nb\n<!-- figures: y -->\n2\n<!-- end of figures -->\n"
	if got, err := fillPage(page, map[string]string{"x": "1\n", "y": "2\n"}); got != want || err != nil {
		t.Errorf("%v\n%s", err, got)
	}
	for name, blocks := range map[string]map[string]string{
		"a place without a block": {"x": "1\n"},
		"a block without a place": {"x": "1\n", "y": "2\n", "z": "3\n"},
	} {
		if _, err := fillPage(page, blocks); err == nil {
			t.Errorf("%s gives no error", name)
		}
	}
	if _, err := fillPage("<!-- figures: x -->\n", map[string]string{"x": "1\n"}); err == nil {
		t.Error("a place without an end gives no error")
	}
}

// publish writes the page and the data, and the data can be read again.
func TestScaling_publish(t *testing.T) {
	s := sampleScaling(t, &bench{options: newOptions()})
	page := filepath.Join(t.TempDir(), "scaling.md")
	text := ""
	for name := range s.blocks() {
		text += figuresBegin + name + " -->\n" + figuresEnd
	}
	if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := s.publish(page); err != nil {
		t.Fatal(err)
	}
	read, err := readScaling(dataOf(page, scalingData))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if want, err := fillPage(string(got), read.blocks()); err != nil || want != string(got) {
		t.Errorf("%v: the data that was read gives another page", err)
	}
	if got := dataOf("docs/scaling.md", scalingData); got != "bench/scaling.jsonl" {
		t.Error(got)
	}
}
