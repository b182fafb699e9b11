// The program of make planted. It puts the defects of defects.txt into a copy of the repository, one at a time, and says
// which tests find each.
package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const folder = "build/out/planted"

func main() {
	only := flag.String("only", "", "plant the defects that this regular expression matches")
	names := flag.String("lanes", "", "the lanes to run, with commas between; all if empty")
	workers := flag.Int("workers", 1, "how many copies to use at once")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r := &runner{known: map[string]result{}, some: *only != ""}
	for _, l := range lanes {
		if *names == "" || slices.Contains(strings.Split(*names, ","), l.name) {
			r.lanes = append(r.lanes, l)
		}
	}
	if err := r.run(ctx, regexp.MustCompile(*only), *workers); err != nil {
		fmt.Fprintln(os.Stderr, "planted:", err)
		os.Exit(1)
	}
}

type runner struct {
	lanes  []lane
	some   bool // not all defects are planted
	checks sync.Once
	sick   error // of check
	mu     sync.Mutex
	known  map[string]result // by the hash of a defect
}

type result struct {
	lane    string // that found the defect; or "survived", or "error"
	seconds int    // until then, from the first lane on
	how     string // what failed
}

// run plants all defects whose names match, and reports.
func (r *runner) run(ctx context.Context, only *regexp.Regexp, workers int) error {
	text, err := os.ReadFile("tests/planted/defects.txt")
	if err != nil {
		return err
	}
	defects, err := readTable(string(text))
	if err != nil {
		return err
	}
	defects = slices.DeleteFunc(defects, func(d defect) bool { return !only.MatchString(d.id()) })
	r.readResults()
	todo := make(chan defect, len(defects))
	for _, d := range defects {
		if _, found := r.known[r.hash(d)]; !found {
			todo <- d
		}
	}
	close(todo)
	fmt.Printf("%d of %d defects were found in earlier runs\n", len(defects)-len(todo), len(defects))
	errs := make(chan error, workers)
	for range workers {
		go func() { errs <- r.work(ctx, todo) }()
	}
	for range workers {
		err = errors.Join(err, <-errs)
	}
	if err != nil {
		return err
	}
	return r.report(defects)
}

// hash names a defect and all that is run for it. If the defect or a lane changes, the defect is planted again.
func (r *runner) hash(d defect) string {
	text := fmt.Sprintf("%q", []string{d.file, d.old, d.new})
	for _, l := range r.lanes {
		text += fmt.Sprintf("%s %q", l.limit, l.steps(filepath.Dir(d.file)))
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:16]
}

// work plants defects in a copy of the files that git knows or would add.
func (r *runner) work(ctx context.Context, todo <-chan defect) error {
	copied, err := os.MkdirTemp("", "planted")
	if err != nil {
		return err
	}
	defer os.RemoveAll(copied)
	const copies = "git ls-files -z --cached --others --exclude-standard | tar -c --null -T - | tar -x -C "
	if out, err := shell(ctx, ".", copies+copied).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	if r.checks.Do(func() { r.sick = r.check(ctx, copied) }); r.sick != nil {
		return r.sick
	}
	for d := range todo {
		if err := r.plant(ctx, copied, d); err != nil {
			return err
		}
	}
	return nil
}

// check makes sure that all lanes pass without a defect. A run of some defects only leaves that out.
func (r *runner) check(ctx context.Context, copied string) error {
	if r.some {
		return nil
	}
	found, how, err := run(ctx, copied, r.lanes, "funnel/none")
	if found != "" {
		return fmt.Errorf("the lane %s fails without a defect: %s", found, how)
	}
	return err
}

// plant plants one defect, runs the lanes, restores the file and notes the result.
func (r *runner) plant(ctx context.Context, copied string, d defect) error {
	file := filepath.Join(copied, d.file)
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	planted, err := d.plant(string(text))
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(planted), 0o644); err != nil {
		return err
	}
	began := time.Now()
	lane, how, err := run(ctx, copied, r.lanes, d.file)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		lane, how = "error", strings.Join(strings.Fields(err.Error()), " ")
	case lane == "":
		lane = "survived"
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return err
	}
	return r.note(d, result{lane, int(time.Since(began).Round(time.Second).Seconds()), how})
}

const results = folder + "/results.txt"

// note prints a result and adds it to the file of results.
func (r *runner) note(d defect, got result) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[r.hash(d)] = got
	line := fmt.Sprintf("%s | %s | %d | %s | %s\n", d.id(), got.lane, got.seconds, got.how, r.hash(d))
	fmt.Print(line)
	f, err := os.OpenFile(results, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(line)
	return err
}

// readResults reads what earlier runs found. The other defects are planted again.
func (r *runner) readResults() {
	text, _ := os.ReadFile(results)
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if n := len(cells); n >= 5 && cells[n-4] != "survived" && cells[n-4] != "error" {
			seconds, _ := strconv.Atoi(cells[n-3])
			r.known[cells[n-1]] = result{cells[n-4], seconds, cells[n-2]}
		}
	}
}

// report prints how many defects each lane found, and which none found. The file of results has all.
func (r *runner) report(defects []defect) error {
	count, seconds := map[string]int{}, map[string]int{}
	for _, d := range defects {
		got := r.known[r.hash(d)]
		count[got.lane]++
		seconds[got.lane] += got.seconds
		if got.lane == "survived" || got.lane == "error" {
			fmt.Printf("%s: %s\n", got.lane, d.id())
		}
	}
	fmt.Print("| found by | defects | seconds each |\n|---|---|---|\n")
	for _, l := range append(r.lanes, lane{name: "survived"}, lane{name: "error"}) {
		fmt.Printf("| %s | %d | %d |\n", l.name, count[l.name], seconds[l.name]/max(count[l.name], 1))
	}
	if lost := count["survived"] + count["error"]; lost > 0 {
		return fmt.Errorf("%d defects were not found", lost)
	}
	return nil
}
