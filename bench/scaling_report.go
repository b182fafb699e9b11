package main

import (
	"fmt"
	"math"
	"strings"
)

// A scaling is what make bench-scaling measured.
type scaling struct {
	scalingAbout
	rows []*scaleRow
}

// row returns the row of a load at a place. A row that is not there yet is added.
func (s *scaling) row(server, place, load string) *scaleRow {
	for _, r := range s.rows {
		if r.Server == server && r.Place == place && r.Load == load {
			return r
		}
	}
	s.rows = append(s.rows, &scaleRow{Server: server, Place: place, Load: load})
	return s.rows[len(s.rows)-1]
}

// scalingData is the file with the figures of docs/scaling.md.
const scalingData = "scaling.jsonl"

func (s *scaling) publish(page string) error {
	return publish(page, scalingData, s.scalingAbout, s.rows, s.blocks(), s.Seconds)
}

// readScaling reads the file that publish wrote.
func readScaling(name string) (*scaling, error) {
	s := &scaling{}
	var err error
	s.rows, err = readFigures[scaleRow](name, &s.scalingAbout)
	return s, err
}

// blocks returns the text for each place of the page.
func (s *scaling) blocks() map[string]string {
	return map[string]string{
		"run":      s.runText(),
		"server":   s.serverText(),
		"threads":  markdown(s.threadTable()),
		"shards":   markdown(s.shardTable()) + "\n" + s.verdict(),
		"shares":   markdown(s.shareTable()),
		"hot":      markdown(s.hotTable()),
		"remedies": markdown(remedyTable()),
	}
}

func (s *scaling) runText() string {
	return fmt.Sprintf("Written by `%s` on %s, in %.0f minutes.\n%s.\nServers: %s. Load average of the minute before: %s.\n"+
		"%d rounds; the tables show medians. %d clients each send %d calls per server and wait for the replies.\n\"Many keys\" are %s.\n",
		s.Command, s.Date, math.Ceil(s.Seconds/60), strings.ToUpper(s.Machine[:1])+s.Machine[1:], strings.Join(s.Servers, ", "),
		s.Load, s.Rounds, s.Conns, s.Depth, thousands(s.Keys))
}

// perSecond tells how many ops per second a main thread can do that needs this many µs for
// each, to two digits.
func perSecond(micros float64) string {
	rate := 1e6 / micros
	digit := math.Pow(10, math.Floor(math.Log10(rate))-1)
	return thousands(int64(math.Round(rate/digit) * digit))
}

// serverText tells what one server can do.
func (s *scaling) serverText() string {
	var text strings.Builder
	for _, server := range s.Servers {
		possible := func(load string) string {
			return perSecond(spreadOf(s.row(server, "io-threads 1", load).Main).median)
		}
		fmt.Fprintf(&text, "- One %s makes about **%s** decisions per second if the calls are pipelined, and %s if they are not.\n",
			server, possible(manyKeys), possible(oneByOne))
	}
	return text.String()
}

// table returns a table with columns for each server.
func (s *scaling) table(first string, columns []string, names []string, cells func(name, server string) []string) table {
	t := table{{first}}
	for _, server := range s.Servers {
		for i, column := range columns {
			if i == 0 {
				column = server + ": " + column
			}
			t[0] = append(t[0], column)
		}
	}
	for _, name := range names {
		line := []string{name}
		for _, server := range s.Servers {
			line = append(line, cells(name, server)...)
		}
		t = append(t, line)
	}
	return t
}

func (s *scaling) threadTable() table {
	return s.table("io-threads", []string{"CPU µs", "main thread µs", "seen/s", "possible/s"}, []string{"1", "2", "4", "1, not pipelined", "2, not pipelined", "4, not pipelined"},
		func(name, server string) []string {
			load := manyKeys
			threads, _, single := strings.Cut(name, ", not")
			if single {
				load = oneByOne
			}
			r := s.row(server, "io-threads "+threads, load)
			main := spreadOf(r.Main).median
			return []string{micros(r.CPU), micros([]float64{main}), thousands(int64(spreadOf(r.Rate).median)), perSecond(main)}
		})
}

func micros(values []float64) string { return fmt.Sprintf("%.2f", spreadOf(values).median) }

// byRound returns the spread of the rounds' ratios of two rows.
func byRound(a, b []float64) spread {
	var ratios []float64
	for i := range min(len(a), len(b)) {
		ratios = append(ratios, a[i]/b[i])
	}
	return spreadOf(ratios)
}

func (s *scaling) shardTable() table {
	return s.table("shards", []string{"CPU µs", "to 1 shard", "min..max", "all on one CPU"}, []string{alone, "1", "2", "3"},
		func(name, server string) []string {
			r, one := s.row(server, name, inTurn), s.row(server, "1", inTurn)
			shared := byRound(s.row(server, name, manyKeys).CPU, s.row(server, "1", manyKeys).CPU)
			return append(append([]string{micros(r.CPU)}, cells(byRound(r.CPU, one.CPU), "%.2f")...), cells(shared, "%.2f")[0])
		})
}

// shardTolerance is how much dearer or cheaper a decision of 2 or 3 shards may be than one
// of 1 shard.
const shardTolerance = 0.05

// verdict tells whether a decision costs the same on 1, 2 and 3 shards.
func (s *scaling) verdict() string {
	farthest := 0.0
	for _, server := range s.Servers {
		for _, name := range []string{"2", "3"} {
			ratio := byRound(s.row(server, name, inTurn).CPU, s.row(server, "1", inTurn).CPU).median
			farthest = max(farthest, rounded(math.Abs(ratio-1)))
		}
	}
	met := "met"
	if farthest > shardTolerance {
		met = "missed"
	}
	return fmt.Sprintf("A decision on 2 or 3 shards costs what it costs on 1 shard, within %.0f %%. The target is %.0f %%: %s.\n",
		math.Ceil(rounded(100*farthest)), 100*shardTolerance, met)
}

func (s *scaling) shareTable() table {
	return s.table("calls", []string{"busiest of 3", "possible/s, 1 shard", "3 shards"}, []string{manyKeys, manyTags, fewTags, splitKey, oneKey},
		func(name, server string) []string {
			one, three := s.row(server, "1", name), s.row(server, "3", name)
			return []string{fmt.Sprintf("%.0f %%", 100*spreadOf(three.Share).median),
				perSecond(spreadOf(one.Top).median), perSecond(spreadOf(three.Top).median)}
		})
}

// units is how many units a call of a load takes.
func units(load string) float64 {
	if load == batchOf10 {
		return 10
	}
	return 1
}

func (s *scaling) hotTable() table {
	return s.table("calls", []string{"CPU µs per call", "µs per unit", "to one key"}, []string{oneKey, oneDenied, batchOf10},
		func(name, server string) []string {
			r, one := s.row(server, alone, name), s.row(server, alone, oneKey)
			cpu := spreadOf(r.CPU).median
			return []string{fmt.Sprintf("%.2f", cpu), fmt.Sprintf("%.2f", cpu/units(name)),
				fmt.Sprintf("%.2f", byRound(r.CPU, one.CPU).median/units(name))}
		})
}
