package tests

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gothrottle/commands"
)

// Every code block of every page is run by a test. The kind of a block tells how:
//
//	calls              on an empty server at a frozen clock; "Replies:" after the block has the replies
//	"> call"           a conversation: its replies stand below each call, and "10 seconds later:" moves the clock
//	settings           a server starts with these lines of a configuration file
//	Go                 a program that makes the call of README.md and prints its reply
//	all other lines    bash runs them in a copy of the repository: see standIns in harness_shell_test.go
//
// Calls of one section share a server. elsewhere names the lines that another test runs.
var elsewhere = []place{
	{"README.md", "make image ", "build/test-docker.sh", "build/image.sh"},
	{"README.md", "make package ", "build/test-packages.sh", "build/package.sh"},
	{"README.md", "apt-get install ./build/out/packages/", "build/test-packages.sh", "package-trial.sh"},
	{"README.md", "cat /usr/share/gothrottle/", "build/test-packages.sh", "README.md"},
	{"docs/clients.md", "# Clients", "examples/page_test.go", "func TestClientsPage_blocksStandInPrograms("},
	{"docs/go.md", "# The Go client", "throttle/page_test.go", "func TestPage_snippets("},
	{"docs/upstream/valkey-rm-call.md", "# One cross-slot call makes all later RM_Calls fail", "tests/refused_test.go", "func TestRefusedCalls("},
	{"docs/releasing.md", "# Releasing", "build/versions_test.go", "func TestReleasing_setsTheVersion("},
	{"README.md", "docker run ", "tests/pages_test.go", "func TestPages_dockerLines("},
	{"docs/migrating.md", "### The swap", "tests/swap_test.go", "func TestSwap("},
	{"docs/migrating.md", "### The swap with Sentinel or in a cluster", "tests/swap_test.go", "func TestSwap_sentinel("},
	{"docs/migrating.md", "### The swap of one server", "tests/swap_test.go", "func TestSwap_oneServer("},
	{"docs/monitoring.md", "# Set it up", "deploy/monitoring/panels_test.go", "func TestStack_everyPanelShowsTheTraffic("},
	{"docs/migrating.md", "### The way back", "tests/swap_test.go", "func TestSwap_wayBack("},
}

// place is a line of a page, by its beginning, and the test that runs the line. A line that begins with "#" is a
// heading: the test runs all blocks of that section, or of the whole page if it is the page's title. A test in Go is
// proved by its function, and its file must name the page and the heading of a section. A script is proved by a text in
// it, and make test-all must run the script.
type place struct{ page, line, file, proof string }

// Every block of every page runs. A block that no runner knows fails, as a block does that is broken.
func TestPages_everyBlockRuns(t *testing.T) {
	lasts(t)
	r := newRunner(t)
	used := map[int]bool{}
	texts := pages(t)
	for _, page := range slices.Sorted(maps.Keys(texts)) {
		section := ""
		for _, b := range blocksOf(page, texts[page]) {
			if b.section != section {
				section = b.section
				r.begin()
			}
			assert.NoError(t, r.run(b, used), "%s:%d: %s", page, b.line, b.first())
		}
	}
	for i, entry := range elsewhere {
		assert.True(t, used[i], "no block has the line %v", entry)
	}
}

// Every call within the text of a page works on a new key, and admits.
func TestPages_everyCallInTheTextWorks(t *testing.T) {
	r := newRunner(t)
	inText := regexp.MustCompile("`((?:GO|CL)\\.[A-Z_]+ [^` ]+ [^`]*[0-9][^`]*)`")
	for page, text := range pages(t) {
		r.begin()
		for _, call := range inText.FindAllStringSubmatch(text, -1) {
			r.talk.must("FLUSHALL")
			assert.Regexp(t, `^(\[0 [-0-9 \[\]]+\]|\d+|map\[.*\])$`, r.talk.ask(call[1]), "%s: %s", page, call[1])
		}
	}
}

// runner runs blocks of any kind.
type runner struct {
	t       testing.TB
	talk    *talk
	desk    *desk
	configs []string // names of the server's configurations
}

func newRunner(t testing.TB) *runner {
	clock := newClock(t)
	day := time.Date(2027, 1, 15, 0, 0, 0, 0, time.UTC)
	clock.freeze(day)
	r := &runner{t: t, talk: &talk{server: start(t, options{clock: clock}), clock: clock, now: day}, desk: newDesk(t)}
	all, err := r.talk.ConfigGet(ctx, "*").Result()
	require.NoError(t, err)
	r.configs = append(slices.Collect(maps.Keys(all)), "loadmodule", "include", "user", "rename-command")
	return r
}

// begin starts a section: the servers are empty.
func (r *runner) begin() {
	r.talk.begin()
	r.desk.begin()
}

var goLine = regexp.MustCompile(`(?m)^(package|import|type|func) | := `)

// run runs a block. used gets the lines of the table elsewhere that the block has.
func (r *runner) run(b *block, used map[int]bool) error {
	for i, e := range elsewhere {
		if heading := strings.TrimLeft(e.line, "#"); e.page == b.page && (heading == " "+b.section || strings.HasPrefix(e.line, "# ")) {
			used[i] = true
			return proved(e)
		}
	}
	switch {
	case goLine.MatchString(b.text()):
		return r.desk.goProgram(b)
	case len(b.lines) == 1 && strings.HasPrefix(b.first(), b.section+" "):
		return checkSyntax(b)
	case strings.HasPrefix(b.first(), "> ") || commandLine.MatchString(b.first()):
		return r.talk.run(b.lines, b.replies)
	}
	kinds, groups, err := r.groups(b, used)
	if err != nil {
		return err
	}
	for i, lines := range groups {
		if kinds[i] == "config" {
			err = r.desk.config(lines)
		} else {
			err = r.desk.shell(lines, b.replies)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// groups splits a block into runs of lines for the configuration file and runs of lines for the shell. Lines of the
// table elsewhere are left out.
func (r *runner) groups(b *block, used map[int]bool) (kinds []string, groups [][]string, err error) {
	whole := strings.ReplaceAll(b.text(), "\\\n", "\\\x00")
	for _, line := range strings.Split(strings.TrimSpace(whole), "\n") {
		if i := slices.IndexFunc(elsewhere, func(e place) bool {
			return e.page == b.page && strings.HasPrefix(line, e.line)
		}); i >= 0 {
			used[i] = true
			if err := proved(elsewhere[i]); err != nil {
				return nil, nil, err
			}
			continue
		}
		kind := "shell"
		if word, _, _ := strings.Cut(line, " "); slices.Contains(r.configs, word) {
			kind = "config"
		}
		if len(kinds) == 0 || kinds[len(kinds)-1] != kind {
			kinds, groups = append(kinds, kind), append(groups, nil)
		}
		last := len(groups) - 1
		groups[last] = append(groups[last], strings.ReplaceAll(line, "\x00", "\n"))
	}
	return kinds, groups, nil
}

// proved says whether the test of a place exists and is about the page.
func proved(e place) error {
	text, err := os.ReadFile("../" + e.file)
	if err != nil {
		return err
	}
	if !strings.Contains(string(text), e.proof) {
		return fmt.Errorf("%s lacks %q", e.file, e.proof)
	}
	if strings.HasSuffix(e.file, "_test.go") {
		if !strings.HasPrefix(e.proof, "func Test") || !strings.Contains(string(text), e.page) {
			return fmt.Errorf("%s must have a test that reads %s", e.file, e.page)
		}
		if heading, found := strings.CutPrefix(strings.TrimLeft(e.line, "#"), " "); found && strings.HasPrefix(e.line, "##") && !strings.Contains(string(text), heading) {
			return fmt.Errorf("%s must have a test that reads the section %q", e.file, heading)
		}
		return nil
	}
	part := regexp.MustCompile(`build/test-(\w+)\.sh`).FindStringSubmatch(e.file)
	if text, err = os.ReadFile("../build/test-all.sh"); err == nil && (part == nil || !strings.Contains(string(text), " "+part[1]+" ")) {
		err = fmt.Errorf("make test-all does not run %s", e.file)
	}
	return err
}

// checkSyntax compares a block with the syntax of the command that its section is about.
func checkSyntax(b *block) error {
	for _, c := range commands.Table {
		if c.Name == b.section && c.Syntax() != b.first() {
			return fmt.Errorf("%q, the syntax is %q", b.first(), c.Syntax())
		}
	}
	return nil
}

// A block with one fault fails, whatever its kind; without the fault it runs.
func TestPages_aBrokenBlockFails(t *testing.T) {
	lasts(t)
	r := newRunner(t)
	for _, c := range []struct {
		page, section, good string
		faults              []string // each is "from => to"
	}{
		{"docs/x.md", "Calls", "    GO.QUOTA k 100 60\n    GO.QUOTA k 100 60 99\n\nReplies: `0 100 99 -1 60`, `0 100 0 -1 60`\n",
			[]string{"QUOTA k 100 60 99 => QUOTE k 100 60 99", "-1 60`, => -1 61`,", ", `0 100 0 -1 60` => ", " 99\n => 99 SURPRISE\n", "100 60\n => 100\n"}},
		{"docs/x.md", "Talk", "    > GO.THROTTLE k 0 1 60\n    0 1 0 -1 60\n    10 seconds later:\n    > GO.THROTTLE k 0 1 60\n    1 1 0 50 50\n",
			[]string{"0 1 0 -1 60 => 0 1 0 -1 59", "10 seconds => 11 seconds", "10 seconds later: => soon:", "> GO.THROTTLE k 0 1 60\n    1 => > GO.THROTTLE k 0 1 61\n    1"}},
		{"docs/x.md", "Fields", "    > GO.THROTTLE k 0 1 60\n    > INFO gothrottle\n    gothrottle_panics:0\n",
			[]string{"_panics => _panic", ":0 => :1"}},
		{"docs/x.md", "A call", "    GO.THROTTLE user:42 15 30 60\n        | drawn\n\n    1) (integer) 0  limited\n    2) (integer) 16\n    3) (integer) 15\n    4) (integer) -1\n    5) (integer) 2\n",
			[]string{"(integer) 16 => (integer) 15", "5) (integer) 2\n => \n", "15 30 60 => 15 30"}},
		{"docs/x.md", "Shell", "    redis-cli GO.THROTTLE k 1 1 60\n    test -x /usr/lib/redis/modules/gothrottle.so    # is there\n    ls README.md >/dev/null\n\nReplies: `0 2 1 -1 60`\n",
			[]string{"redis-cli => rediscli", "1 1 60 => 1 1", "2 1 -1 60 => 2 1 -1 61", "gothrottle.so => throttle.so", "README => READYOU", "ls README => false && ls README", "redis-cli => git clone x redis-cli && redis-cli"}},
		{"docs/x.md", "Load", "    redis-cli MODULE LOAD /usr/lib/redis/modules/gothrottle.so cl-throttle no\n",
			[]string{"gothrottle.so => other.so", " no\n => maybe\n"}},
		{"docs/x.md", "Fence", "```\nredis-cli PING\n```\n", []string{"PING => PINGU", "redis-cli => redis_cli"}},
		{"docs/x.md", "Configuration", "    loadmodule /usr/lib/redis/modules/gothrottle.so cl-throttle no\n    gothrottle.policies \"a QUOTA 1 1s\"\n    maxmemory 100mb\n",
			[]string{"cl-throttle no => cl-throttle maybe", "modules/ => module/", "QUOTA => QUOTE", ".policies => .policy", "100mb => much", "loadmodule => load-module"}},
		{"docs/x.md", "GO.RELEASE", "    GO.RELEASE key id [id ...]\n", []string{" [id ...] => "}},
		{"docs/x.md", "Go", "    rdb := redis.NewClient(&redis.Options{Addr: \"127.0.0.1:6379\", ContextTimeoutEnabled: true})\n    client, err := throttle.New(rdb, throttle.Options{})\n    result, err := client.Allow(ctx, \"k\", throttle.PerMinute(30).Burst(16))\n",
			[]string{"NewClient => NewClients", "Burst(16) => Burst(15)", ", ContextTimeoutEnabled: true => "}},
		{"docs/x.md", "Drop-in", "", []string{" => [Service]\n    LimitAS=infinity\n"}},
		{"docs/x.md", "YAML", "", []string{" => services:\n      redis:\n        image: x\n"}},
		{"docs/x.md", "Machine", "", []string{" => apt-get install nothing\n", " => systemctl restart nothing\n", " => redis-cli -p 6380 PING\n", " => rm /etc/redis/6380.conf\n", " => redis-server --port 6380\n", " => docker run nothing\n"}},
	} {
		assert.NoError(t, r.page(c.page, "## "+c.section+"\n\n"+c.good), c.section)
		for _, fault := range c.faults {
			from, to, _ := strings.Cut(fault, " => ")
			require.Contains(t, c.good, from, "%s: %s", c.section, fault)
			broken := strings.Replace(c.good, from, to, 1)
			if c.good == "" {
				broken = "    " + to
			}
			assert.Error(t, r.page(c.page, "## "+c.section+"\n\n"+broken), "%s: %s", c.section, fault)
		}
	}
}

// A line of elsewhere without its test fails.
func TestPages_elsewhereIsTrue(t *testing.T) {
	for _, e := range elsewhere {
		assert.NoError(t, proved(e), "%v", e)
	}
	for _, lie := range []place{
		{"README.md", "x", "tests/none_test.go", "func TestPages_dockerLines("},
		{"README.md", "x", "tests/pages_test.go", "func Test" + "Pages_none("},
		{"README.md", "x", "tests/pages_test.go", "place"},
		{"README.md", "## No such " + "section", "tests/pages_test.go", "func TestPages_dockerLines("},
		{"docs/" + "none.md", "x", "tests/pages_test.go", "func TestPages_dockerLines("},
		{"README.md", "x", "build/test-docker.sh", "build/none.sh"},
		{"README.md", "x", "build/run.sh", "build/module.sh"},
	} {
		assert.Error(t, proved(lie), "%v", lie)
	}
}

// page runs the blocks of a page of one section.
func (r *runner) page(page, text string) error {
	r.begin()
	for _, b := range blocksOf(page, text) {
		if err := r.run(b, map[int]bool{}); err != nil {
			return err
		}
	}
	return nil
}

// dockerLine is a line of a page that starts the image.
var dockerLine = regexp.MustCompile(`(?m)^    docker run -p 127\.0\.0\.1:6379:6379 gothrottle:dev(.*)$`)

// The lines of README.md that start the image do so, with another port.
func TestPages_dockerLines(t *testing.T) {
	lines := dockerLine.FindAllStringSubmatch(pages(t)["README.md"], -1)
	require.NotEmpty(t, lines)
	if env.image == "" {
		t.Skip("only with GOTHROTTLE_IMAGE")
	}
	for _, line := range lines {
		args := strings.Fields(comment.ReplaceAllString(line[1], ""))
		s := connect(t, env.docker.Run(t, append([]string{env.image}, args...)...))
		require.NoError(t, s.run.Await(), line[0])
		assert.Equal(t, []int64{0, 16, 15, -1, 2}, s.throttle("user:42", 15, 30, 60), line[0])
	}
}
