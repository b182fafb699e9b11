// The program of make planted. It puts the defects of defects.txt into a copy of the repository, one at a time, and says
// which tests find each.
package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

const resultsFile = "build/out/planted/results.txt"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r := &runner{known: readResults()}
	if err := r.run(ctx, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "planted:", err)
		os.Exit(1)
	}
}

type runner struct {
	copied string            // the folder with a copy of the files that git knows or would add
	notes  io.Writer         // prints a result and adds it to the file of results
	known  map[string]string // which lane found a defect, by its hash; or "survived", or "error"
}

// run plants all defects whose names match, and reports. Before it plants all, it makes sure that the tests pass without.
func (r *runner) run(ctx context.Context, only string) error {
	text, err := os.ReadFile("tests/planted/defects.txt")
	if err != nil {
		return err
	}
	defects, err := readTable(string(text))
	if err != nil {
		return err
	}
	wanted := regexp.MustCompile(only)
	defects = slices.DeleteFunc(defects, func(d defect) bool { return !wanted.MatchString(d.id()) })
	f, err := os.OpenFile(resultsFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	r.notes = io.MultiWriter(os.Stdout, f)
	if r.copied, err = os.MkdirTemp("", "planted"); err != nil {
		return err
	}
	defer os.RemoveAll(r.copied)
	const copies = "git ls-files -z --cached --others --exclude-standard | tar -c --null -T - | tar -x -C "
	if out, err := shell(ctx, ".", copies+r.copied).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	if only == "" {
		if lane, how := test(ctx, r.copied, "funnel"); lane != "survived" && ctx.Err() == nil {
			return fmt.Errorf("the lane %s fails without a defect: %s", lane, how)
		}
	}
	for _, d := range defects {
		if _, found := r.known[d.hash()]; found {
			continue
		}
		if err := r.plant(ctx, d); err != nil {
			return err
		}
	}
	return r.report(defects)
}

// hash names a defect and all that is run for it. If the defect or a lane changes, the defect is planted again.
func (d *defect) hash() string {
	text := fmt.Sprintf("%q", []string{d.file, d.old, d.new})
	for _, l := range lanes {
		text += fmt.Sprintf("%s %q", l.limit, l.of(path.Dir(d.file)))
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:16]
}

// plant plants one defect, runs the lanes, restores the file and notes the result.
func (r *runner) plant(ctx context.Context, d defect) error {
	file := filepath.Join(r.copied, d.file)
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	planted, err := d.plant(string(text))
	if err != nil {
		return err
	}
	if err := r.write(ctx, file, planted); err != nil {
		return err
	}
	began := time.Now()
	lane, how := test(ctx, r.copied, path.Dir(d.file))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := r.write(ctx, file, string(text)); err != nil {
		return err
	}
	r.known[d.hash()] = lane
	_, err = fmt.Fprintf(r.notes, "%s | %s | %.0f | %s | %s\n", d.id(), lane, time.Since(began).Seconds(), how, d.hash())
	return err
}

// write writes a file of the copy, and what is made of it.
func (r *runner) write(ctx context.Context, file, text string) error {
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil || filepath.Ext(file) != ".lua" {
		return err
	}
	return shell(ctx, r.copied, "go generate ./script").Run()
}

// readResults reads what earlier runs found. The other defects are planted again.
func readResults() map[string]string {
	known := map[string]string{}
	text, _ := os.ReadFile(resultsFile)
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if n := len(cells); n >= 5 && cells[n-4] != "survived" && cells[n-4] != "error" {
			known[cells[n-1]] = cells[n-4]
		}
	}
	return known
}

// report prints how many defects each lane found, and which none found. The file of results also has the time that
// it took, and which test failed.
func (r *runner) report(defects []defect) error {
	count := map[string]int{}
	for _, d := range defects {
		found := r.known[d.hash()]
		if count[found]++; found == "survived" || found == "error" {
			fmt.Printf("%s: %s\n", found, d.id())
		}
	}
	fmt.Print("| found by | defects |\n|---|---|\n")
	for _, l := range append(lanes, lane{name: "survived"}, lane{name: "error"}) {
		fmt.Printf("| %s | %d |\n", l.name, count[l.name])
	}
	if lost := count["survived"] + count["error"]; lost > 0 {
		return fmt.Errorf("%d defects were not found", lost)
	}
	return nil
}
