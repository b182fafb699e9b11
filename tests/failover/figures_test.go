package failover

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// The page shows the figures of the file beside this test, between two comments.
const (
	page       = "../../docs/operating.md"
	data       = "figures.json"
	pageBegins = "<!-- figures: failover -->\n"
	pageEnds   = "<!-- end of figures -->\n"
)

// figures is what a run measured.
type figures struct {
	Server string // the first line of its --version
	Rows   []*row
}

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

// text returns the figures as the page shows them.
func (f *figures) text() string {
	return f.table() + "\n" + f.totals()
}

func (f *figures) table() string {
	var b strings.Builder
	b.WriteString("| servers | failure | failovers | largest excess, units | old master goes on, ms | acknowledged units lost | no decision, ms | " +
		"of that with a new master, ms |\n|---|---|---:|---:|---:|---:|---:|---:|\n")
	for _, r := range f.Rows {
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %d | %d of %d | %d, %d | %d, %d |\n", r.Servers, r.Fault, r.Failovers, r.Excess, r.Held,
			r.Lost, r.Acknowledged, r.Out[0], r.Out[1], r.Back[0], r.Back[1])
	}
	return b.String()
}

// totals returns a sentence about all rows, in lines of the page.
func (f *figures) totals() string {
	var sum row
	for _, r := range f.Rows {
		sum.Failovers, sum.Calls, sum.Over = sum.Failovers+r.Failovers, sum.Calls+r.Calls, sum.Over+r.Over
		sum.Longest, sum.Excess = max(sum.Longest, r.Longest), max(sum.Excess, r.Excess)
		sum.Lost, sum.Acknowledged = sum.Lost+r.Lost, sum.Acknowledged+r.Acknowledged
	}
	return fmt.Sprintf("%s. %d failovers: the largest excess was %d units, and %d of %d acknowledged units were lost.\n"+
		"The Go client made %d calls with a limit of 50 ms: %.2f %% took more than 60 ms, the longest %d ms.\n", f.Server, sum.Failovers,
		sum.Excess, sum.Lost, sum.Acknowledged, sum.Calls, 100*float64(sum.Over)/float64(max(1, sum.Calls)), sum.Longest)
}

// fill puts the figures into the text of the page.
func (f *figures) fill(text string) (string, error) {
	before, rest, begins := strings.Cut(text, pageBegins)
	_, after, ends := strings.Cut(rest, pageEnds)
	if !begins || !ends {
		return "", fmt.Errorf("%s has no place for the figures", page)
	}
	return before + pageBegins + f.text() + pageEnds + after, nil
}

// write keeps the figures in the file, and in the page.
func (f *figures) write() error {
	list, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	filled, err := f.fill(string(text))
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(data, append(list, '\n'), 0o644), os.WriteFile(page, []byte(filled), 0o644))
}

func TestFigures_pageShowsTheData(t *testing.T) {
	var f figures
	list, err := os.ReadFile(data)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(list, &f))
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	filled, err := f.fill(string(text))
	require.NoError(t, err)
	require.Equal(t, filled, string(text), "%s does not show %s: run make test-failover FAILOVERS=200 FIGURES=1", page, data)
	failovers := 0
	for _, r := range f.Rows {
		failovers += r.Failovers
		require.Zero(t, r.Lost, r.Fault)
	}
	require.GreaterOrEqual(t, failovers, 200)
}
