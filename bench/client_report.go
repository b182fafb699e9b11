package main

import (
	"fmt"
	"math"
	"strings"
)

// clientData is the file with the figures of docs/go.md.
const clientData = "client.jsonl"

func (c *clientRun) publish(page string) error {
	return publish(page, clientData, c.clientAbout, c.rows, c.blocks(), c.Seconds)
}

// readClient reads the file that publish wrote.
func readClient(name string) (*clientRun, error) {
	c := &clientRun{}
	var err error
	c.rows, err = readFigures[clientRow](name, &c.clientAbout)
	return c, err
}

// blocks returns the text for each place of the page.
func (c *clientRun) blocks() map[string]string {
	return map[string]string{
		"client run":     c.runText(),
		"client targets": markdown(c.targetTable()),
		"client rates":   markdown(c.loadTable("decisions/s", func(r *clientRow) string { return c.rateText(r) })),
		"client server":  markdown(c.loadTable("server CPU, µs", func(r *clientRow) string { return micros(r.CPU) })),
		"client single":  markdown(c.singleTable()),
		"client excess":  markdown(c.excessTable()),
	}
}

func (c *clientRun) runText() string {
	return fmt.Sprintf("Written by `%s` on %s, in %.0f minutes.\n%s.\nServer: %s, on the same machine. Load average of the minute before: %s.\n"+
		"%d rounds, %.1f s for each load; the tables show medians. \"Pipelined\" is `Queue` with %d decisions per pipeline.\n"+
		"\"Plain\" is `NoCoalescing`: a command for each decision, several in a pipeline under load. Zipf keys have the exponent %.1f.\n",
		c.Command, c.Date, math.Ceil(c.Seconds/60), strings.ToUpper(c.Machine[:1])+c.Machine[1:], c.Server, c.Load,
		c.Rounds, c.Slice, queueDepth, zipfExponent)
}

// A target is a ratio of two rows, and the bound that it should keep.
type target struct {
	what    string
	bound   float64
	atLeast bool
	is      spread
}

func (t target) met() string {
	met := t.is.median <= t.bound
	if t.atLeast {
		met = t.is.median >= t.bound
	}
	if met {
		return "met"
	}
	return "missed" // also if the ratio was not measured
}

// targets compares rows of the same round.
func (c *clientRun) targets() []target {
	many := clientGoroutines[len(clientGoroutines)-1]
	load := func(name string, keys int) *clientRow { return c.row(loadKind, name, many, keys) }
	single := func(name string) *clientRow { return c.row(singleKind, name, 1, 1) }
	zipf := clientKeys[len(clientKeys)-1]
	return []target{
		{"decisions/s, one key, 256 goroutines: coalesced to redis_rate", 30, true,
			byRound(load(coalesced, 1).Rate, load(redisRate, 1).Rate)},
		{"decisions/s, Zipf keys, 256 goroutines: coalesced to redis_rate", 4, true,
			byRound(load(coalesced, zipf).Rate, load(redisRate, zipf).Rate)},
		{"server CPU, one key, 256 goroutines: coalesced to Do of go-redis", 0.03, false,
			byRound(load(coalesced, 1).CPU, load(rawDo, 1).CPU)},
		{"the same: coalesced to plain, which shares pipelines", 0.03, false,
			byRound(load(coalesced, 1).CPU, load(uncoalesced, 1).CPU)},
		{"the same: budget 100 to Do of go-redis", 0.01, false,
			byRound(load(budgeted, 1).CPU, load(rawDo, 1).CPU)},
		{"the same: budget 100 to plain", 0.01, false,
			byRound(load(budgeted, 1).CPU, load(uncoalesced, 1).CPU)},
		{"p50, one goroutine: Allow to Do of go-redis", 1.03, false, byRound(single(coalesced).P50, single(rawDo).P50)},
		{"allocations: plain Allow to redis_rate", 0.5, false, byRound(single(uncoalesced).Allocs, single(redisRate).Allocs)},
		{"client CPU: plain Allow to redis_rate", 0.7, false, byRound(single(uncoalesced).Client, single(redisRate).Client)},
	}
}

func (c *clientRun) targetTable() table {
	t := table{{"ratio", "target", "median", "min..max", ""}}
	for _, target := range c.targets() {
		sign, format := "<=", "%.3f"
		if target.atLeast {
			sign, format = ">=", "%.1f"
		}
		line := append([]string{target.what, fmt.Sprintf("%s %g", sign, target.bound)}, cells(target.is, format)...)
		t = append(t, append(line, target.met()))
	}
	return t
}

// loadTable has a line for each contender and a column for each load.
func (c *clientRun) loadTable(first string, cell func(*clientRow) string) table {
	t := table{{first}}
	for _, keys := range clientKeys {
		for i, goroutines := range clientGoroutines {
			heading := fmt.Sprint(goroutines)
			if i == 0 && keys == 1 {
				heading = "one key: " + heading
			} else if i == 0 {
				heading = thousands(int64(keys)) + " Zipf keys: " + heading
			}
			t[0] = append(t[0], heading)
		}
	}
	for _, contender := range clientContenders() {
		line := []string{contender.name}
		for _, keys := range clientKeys {
			for _, goroutines := range clientGoroutines {
				line = append(line, cell(c.row(loadKind, contender.name, goroutines, keys)))
			}
		}
		t = append(t, line)
	}
	return t
}

// rateText returns the decisions per second, and the share of the calls that failed if any
// did.
func (c *clientRun) rateText(r *clientRow) string {
	text := thousands(int64(spreadOf(r.Rate).median))
	if failed := spreadOf(r.Failed).median; failed >= 0.0005 {
		text += fmt.Sprintf(" (%.1f %% failed)", 100*failed)
	}
	return text
}

func (c *clientRun) singleTable() table {
	t := table{{"one goroutine", "p50, µs", "to Do", "allocations", "client CPU, µs"}}
	for _, name := range singleNames {
		r := c.row(singleKind, name, 1, 1)
		t = append(t, []string{name, fmt.Sprintf("%.1f", spreadOf(r.P50).median),
			cells(byRound(r.P50, c.row(singleKind, rawDo, 1, 1).P50), "%.3f")[0],
			fmt.Sprintf("%.1f", spreadOf(r.Allocs).median), fmt.Sprintf("%.1f", spreadOf(r.Client).median)})
	}
	return t
}

func (c *clientRun) excessTable() table {
	t := table{{"256 goroutines, one key", "excess, units", "min..max", "bound"}}
	for _, contender := range clientContenders() {
		s := spreadOf(c.row(excessKind, contender.name, clientGoroutines[len(clientGoroutines)-1], 1).Excess)
		line := append([]string{contender.name}, cells(s, "%.0f")...)
		t = append(t, append(line, fmt.Sprint(contender.excess)))
	}
	return t
}
