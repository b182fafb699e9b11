package corpus

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gothrottle/commands/memory"
)

// Host is what runs calls.
type Host interface {
	Begin(now int64)                                     // empties the host and sets its clock, in µs since the Unix epoch
	Clock(now int64)                                     // sets the clock forward
	Call(words []string) (reply any, effects [][]string) // an integer, a string, nil, an error, or a []any of these
	Values() map[string]*memory.Value                    // what the keys hold
}

// Options says how Run runs.
type Options struct {
	Server  bool // the host is a real server
	Still   bool // the host's clock cannot be set: cases that move it are left out, and times are not compared
	Rewrite bool // put the host's replies and effects into the files
}

// epoch is when the first case begins: 2027-01-15 08:00 UTC. Each later case begins whole weeks later.
const (
	epoch = 1_800_000_000_000_000
	week  = 7 * 24 * 3600 * 1_000_000
)

// Files returns the names of all transcripts in a folder.
func Files(t testing.TB, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts in %s: %v", folder, err)
	}
	return files
}

// Run runs all transcripts of a folder on a host, each case on a new replica of its effects.
func Run(t *testing.T, h Host, folder string, o Options) {
	now := int64(epoch - week)
	for _, file := range Files(t, folder) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			cases, err := Parse(string(text))
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			for _, c := range cases {
				if c.Server && !o.Server || c.Moves && o.Still {
					continue
				}
				now += week - (now-epoch)%week
				r := &run{t: t, h: h, o: o, file: file, now: now, replica: NewMemory()}
				r.run(c)
				now = r.now
			}
			if o.Rewrite {
				if err := os.WriteFile(file, []byte(Format(cases)), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// run is the run of one case.
type run struct {
	t       *testing.T
	h       Host
	o       Options
	file    string
	now     int64
	replica *Memory // nil after a command that it does not know
}

func (r *run) run(c *Case) {
	r.h.Begin(r.now)
	r.replica.Begin(r.now)
	for _, s := range c.Steps {
		switch {
		case s.Wait > 0:
			r.now += s.Wait.Microseconds()
			r.h.Clock(r.now)
		case s.Call:
			r.call(s)
		}
	}
}

func (r *run) call(s *Step) {
	words, err := Words(s.Text, r.now)
	if err != nil {
		r.t.Fatalf("%s:%d: %v", r.file, s.Line, err)
	}
	result, effects := r.h.Call(words)
	reply, writes := ReplyText(result), EffectsText(effects, r.now)
	if !s.Own() {
		effects, writes = [][]string{words}, ""
		if err, failed := result.(error); failed && s.Reply == "" {
			r.t.Errorf("%s:%d: > %s\n%v", r.file, s.Line, s.Text, err)
		}
	}
	if r.o.Rewrite {
		if s.Own() || s.Reply != "" {
			s.Reply, s.Writes = reply, writes
		}
	} else {
		if reply != s.Reply && (s.Own() || s.Reply != "") {
			r.t.Errorf("%s:%d: > %s\nreplies %s\n   want %s", r.file, s.Line, s.Text, reply, s.Reply)
		}
		if writes != s.Writes {
			r.t.Errorf("%s:%d: > %s\nwrites %s\n  want %s", r.file, s.Line, s.Text, writes, s.Writes)
		}
	}
	r.follow(s, effects)
}

// follow makes the replica do the effects. Then it must hold what the host holds.
func (r *run) follow(s *Step, effects [][]string) {
	for _, words := range effects {
		if r.replica == nil {
			return
		}
		if _, known := Plain(r.replica.Server, words); !known {
			r.replica = nil
			return
		}
	}
	if r.replica == nil {
		return
	}
	if host, replica := Dump(r.h.Values(), r.now), Dump(r.replica.Values(), r.now); host != replica {
		r.t.Errorf("%s:%d: > %s\nthe server holds  %s\na replica holds   %s", r.file, s.Line, s.Text, host, replica)
	}
}

// Format writes cases as the text of a file.
func Format(cases []*Case) string {
	var b strings.Builder
	for i, c := range cases {
		if i > 0 {
			b.WriteString("\n")
		}
		column := 0
		for _, s := range c.Steps {
			if n := len(s.Text); s.Call && n <= 80 && s.Reply != "" {
				column = max(column, n)
			}
		}
		for _, s := range c.Steps {
			b.WriteString(s.format(column))
		}
	}
	return b.String()
}

const columns = 120

func (s *Step) format(column int) string {
	if !s.Call {
		return s.Text + "\n"
	}
	line := "> " + s.Text
	if s.Reply != "" {
		full := line + strings.Repeat(" ", max(column-len(s.Text), 0)) + "  " + s.Reply
		if len(full) > columns {
			full = line + "\n  replies " + s.Reply
		}
		line = full
	}
	for _, part := range wrap(s.Writes) {
		line += "\n  writes " + part
	}
	return line + "\n"
}

// wrap cuts effects into lines.
func wrap(writes string) (lines []string) {
	if writes == "" {
		return nil
	}
	for _, part := range strings.Split(writes, "; ") {
		last := len(lines) - 1
		if last < 0 || len("  writes "+lines[last]+"; "+part) > columns {
			lines = append(lines, part)
		} else {
			lines[last] += "; " + part
		}
	}
	return slices.Clip(lines)
}
