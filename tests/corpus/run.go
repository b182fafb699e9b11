package corpus

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gothrottle/commands/memory"
	"gothrottle/funnel"
)

// Host is what runs calls.
type Host interface {
	// Begin empties the host. The clock is then at this time, in µs since the Unix epoch.
	Begin(now int64)

	// Clock sets the clock forward.
	Clock(now int64)

	// Call returns the reply, which is an integer, a string, nil, an error, or a []any of these, and what is replicated.
	Call(words []string) (reply any, effects [][]string)

	// Values returns what these keys hold, perhaps nil if they are not there, and how many keys there are, even expired ones.
	Values(keys []string) (values map[string]*memory.Value, all int)
}

// Options says how Run runs.
type Options struct {
	Server  bool // the host is a real server
	Rewrite bool // put the host's replies and effects into the files
	Partial bool // the files have some of the replies, and no effects
	Script  bool // the host has no module
	Wide    bool // its script has the module's range of numbers
}

// Epoch is when a case begins: 2027-01-15 08:00 UTC. A real server's clock does not run back, so there it is when the first
// case begins, and each later case begins whole weeks later. No reply may depend on that.
const (
	Epoch = 1_800_000_000_000_000
	week  = 7 * 24 * 3600 * 1_000_000
)

// Run runs all transcripts of a folder on a host, each case on a new replica of its effects.
func Run(t *testing.T, h Host, folder string, o Options) {
	files, err := filepath.Glob(filepath.Join(folder, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts in %s: %v", folder, err)
	}
	now := int64(Epoch - week)
	for _, file := range files {
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
				reason := c.NeedsModule()
				if c.has("@server") && !o.Server || o.Script && reason != "" && (o.Wide || reason != beyond) {
					continue
				}
				for _, steps := range c.runs() {
					if now += week - (now-Epoch)%week; !o.Server {
						now = Epoch
					}
					r := &run{t: t, h: h, o: o, file: file, now: now, repliesOnly: c.RepliesOnly || o.Partial, replica: NewMemory()}
					r.run(steps)
					if now = r.now; o.Script && r.beyond != (reason == beyond) {
						t.Errorf("%s:%d: marked as beyond the script's range: %v; is: %v", file, steps[0].Line, !r.beyond, r.beyond)
					}
				}
			}
			if tidy := Format(cases); o.Rewrite {
				if err := os.WriteFile(file, []byte(tidy), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if tidy != string(text) && !o.Partial {
				t.Errorf("%s: run go test ./commands -run Corpus -rewrite: it would move columns or cut lines elsewhere", file)
			}
		})
	}
}

// run is the run of one case.
type run struct {
	t           *testing.T
	h           Host
	o           Options
	file        string
	now         int64
	repliesOnly bool    // effects are not compared
	replica     *Memory // nil after a command that it does not know
	beyond      bool    // a reply named the module, so what follows can't be compared
}

func (r *run) run(steps []*Step) {
	r.h.Begin(r.now)
	r.replica.Begin(r.now)
	for _, s := range steps {
		switch {
		case r.beyond:
		case s.Wait > 0:
			r.clock(r.now + s.Wait.Microseconds())
		case !s.At.IsZero():
			r.clock(s.At.UnixMicro())
		case s.Call:
			r.call(s)
		}
	}
}

func (r *run) clock(now int64) {
	if now < r.now {
		r.t.Fatalf("%s: the clock cannot run back to %v", r.file, time.UnixMicro(now))
	}
	r.now = now
	r.h.Clock(now)
	r.replica.Clock(now)
}

func (r *run) call(s *Step) {
	words, err := Words(s.Text, r.now)
	if err != nil {
		r.t.Fatalf("%s:%d: %v", r.file, s.Line, err)
	}
	result, effects := r.h.Call(words)
	reply, writes := ReplyText(result), EffectsText(effects, r.now)
	if !s.Own() {
		effects = [][]string{words}
	}
	if !s.Own() || r.repliesOnly {
		writes = ""
	}
	err, failed := result.(error)
	name, _, _ := strings.Cut(s.Text, " ")
	switch silent := s.Reply == "" && (r.o.Partial || !s.Own()); {
	case r.o.Script && strings.HasSuffix(reply, "use the module"):
		r.beyond = true
		return
	case r.o.Script && reply == "ERR "+strings.TrimSuffix(name, "_RO")+" needs the module":
	case silent && failed:
		r.t.Errorf("%s:%d: > %s\n%v", r.file, s.Line, s.Text, err)
	case silent:
	case r.o.Rewrite:
		s.Reply, s.Writes = reply, writes
	case reply != s.Reply:
		r.t.Errorf("%s:%d: > %s\nreplies %s\n   want %s", r.file, s.Line, s.Text, reply, s.Reply)
	case writes != s.Writes:
		r.t.Errorf("%s:%d: > %s\nwrites %s\n  want %s", r.file, s.Line, s.Text, writes, s.Writes)
	}
	r.follow(s, effects)
}

// follow makes the replica do the effects. Then it must hold what the host holds.
func (r *run) follow(s *Step, effects [][]string) {
	if r.replica == nil {
		return
	}
	for _, words := range effects { // as a replica, it does not look at the expiry of keys
		if _, err := r.replica.Do(0, words...); err != nil && strings.HasPrefix(err.Error(), "ERR unknown command") {
			r.replica = nil
			return
		}
	}
	keys := r.replica.Keys()
	live := slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return r.replica.Get(key).Expired(funnel.Micros(r.now)) })
	values, all := r.h.Values(live)
	if host, replica := Dump(values, r.now), r.replica.Dump(); host != replica || all != len(keys) {
		r.t.Errorf("%s:%d: > %s\nthe server holds %d keys: %s\na replica holds  %d keys: %s", r.file, s.Line, s.Text, all, host, len(keys), replica)
	}
}

// Format writes cases as the text of a file.
func Format(cases []*Case) string {
	var b strings.Builder
	for _, c := range cases {
		column := 0
		for _, s := range c.Steps {
			if n := len(s.Text); s.Call && n <= 80 && s.Reply != "" {
				column = max(column, n)
			}
		}
		for _, s := range c.Steps {
			b.WriteString(s.format(column))
		}
		b.WriteString("\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
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
	if s.Writes != "" {
		line += "\n  writes " + strings.Join(wrap(s.Writes), "\n  writes ")
	}
	return line + "\n"
}

// wrap cuts effects into lines.
func wrap(writes string) (lines []string) {
	for part := range strings.SplitSeq(writes, "; ") {
		last := len(lines) - 1
		if last >= 0 && len("  writes "+lines[last]+"; "+part) <= columns {
			lines[last] += "; " + part
		} else {
			lines = append(lines, part)
		}
	}
	return lines
}
