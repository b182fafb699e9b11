package failover

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// row is the figures of one kind of failover. Times are in milliseconds.
type row struct {
	Servers      string  // "cluster" or "sentinel"
	Fault        string  //
	Failovers    int     //
	Excess       int64   // the largest: units above burst + rate x span, in the worst span of a key
	Held         int64   // the longest time in which the old master went on admitting
	Acknowledged int64   // units with WAIT
	Lost         int64   // of these
	Out          []int64 // without decisions: the median and the longest
	Back         []int64 // of Out, with a new master: the median and the longest
	Calls        int     // of throttle.Clients
	Over         int     // of these, longer than the time limit + 10 ms
	Longest      int64   // of these calls

	outs, backs []int64
}

// summary is the rows of one deployment.
type summary struct {
	servers string
	mu      sync.Mutex
	rows    []*row
}

func newSummary(servers string) *summary { return &summary{servers: servers} }

// row returns the row of a fault, which is new if there is none.
func (s *summary) row(fault string) *row {
	for _, r := range s.rows {
		if r.Fault == fault {
			return r
		}
	}
	s.rows = append(s.rows, &row{Servers: s.servers, Fault: fault})
	return s.rows[len(s.rows)-1]
}

// middle returns the median and the largest.
func middle(list []int64) []int64 {
	slices.Sort(list)
	return []int64{list[len(list)/2], list[len(list)-1]}
}

// table returns the rows as a table of Markdown.
func table(rows []*row) string {
	var b strings.Builder
	b.WriteString("| servers | fault | failovers | largest excess, units | old master admits for, ms | lost of acknowledged units | no decision for, ms | of that with a new master, ms |\n" +
		"|---|---|---:|---:|---:|---:|---:|---:|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %d | %d of %d | %d..%d | %d..%d |\n", r.Servers, r.Fault, r.Failovers, r.Excess, r.Held,
			r.Lost, r.Acknowledged, r.Out[0], r.Out[1], r.Back[0], r.Back[1])
	}
	return b.String()
}

// totals returns a sentence about all rows.
func totals(rows []*row) string {
	var sum row
	for _, r := range rows {
		sum.Failovers, sum.Calls, sum.Over = sum.Failovers+r.Failovers, sum.Calls+r.Calls, sum.Over+r.Over
		sum.Longest, sum.Excess = max(sum.Longest, r.Longest), max(sum.Excess, r.Excess)
		sum.Lost, sum.Acknowledged = sum.Lost+r.Lost, sum.Acknowledged+r.Acknowledged
	}
	return fmt.Sprintf("%d failovers; largest excess %d units; %d of %d acknowledged units lost; %d calls of the Go client with a limit of 50 ms, "+
		"%.2f %% above 60 ms, the longest %d ms.\n", sum.Failovers, sum.Excess, sum.Lost, sum.Acknowledged, sum.Calls,
		100*float64(sum.Over)/float64(max(1, sum.Calls)), sum.Longest)
}
