package tests

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gothrottle/tests/corpus"
	servers "gothrottle/tests/server"
)

// The code blocks of these pages run: calls and conversations as transcripts, in which "10 seconds later:" moves the clock;
// lines of a configuration file; and shell lines. Other pages have tests of their own: examples/page_test.go,
// throttle/page_test.go, swap_test.go, and what build/test-packages.sh, build/test-docker.sh and build/test-monitoring.sh
// run.
var runPages = map[string]string{ // and the shell lines that need a machine of their own
	"README.md":         `^(git clone|docker|make|curl|apt-get|cat) `,
	"docs/choosing.md":  "",
	"docs/commands.md":  "",
	"docs/migrating.md": "",
	"docs/swap.md":      ".", // swap_test.go runs them
	"docs/one-page.md":  "",
	"docs/operating.md": "",
	"docs/recipes.md":   "",
	"docs/scaling.md":   "",
}

// pagePolicies are the policies that the calls of GO.POLICY on the pages have.
const pagePolicies = "api THROTTLE 9 10 1s; login THROTTLE 4 5 300s"

// block is one code block of a page: lines that are indented by four blanks.
type block struct {
	section string // the heading above the block
	lines   []string
}

func blocksOf(t *testing.T, page string) (blocks []*block) {
	t.Helper()
	text, err := os.ReadFile("../" + page)
	require.NoError(t, err)
	section, open, fenced := "", false, false // a fence has a program
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, " \n")
		code, indented := strings.CutPrefix(line, "    ")
		fenced = fenced != strings.HasPrefix(line, "```")
		indented = indented && !fenced
		if line == "" && open {
			continue // the block may go on below
		}
		if !indented {
			if strings.HasPrefix(line, "#") {
				section = strings.TrimLeft(line, "# ")
			}
			open = false
			continue
		}
		if !open {
			blocks, open = append(blocks, &block{section: section}), true
		}
		last := blocks[len(blocks)-1]
		last.lines = append(last.lines, code)
	}
	return blocks
}

var (
	commandLine = regexp.MustCompile(`^(> )?[A-Z][A-Z.]*[A-Z](_RO)?( |$)`)
	laterLine   = regexp.MustCompile(`^(\d+) (second|minute|hour)s? later:$`)
	integerLine = regexp.MustCompile(`^\d+\) \(integer\) (-?\d+)`)
)

// transcript returns a block of calls as lines of a transcript. A reply is below its call, up to two blanks. A call goes
// on in lines that begin with a blank. If the lines have no prompts, such lines explain.
func (b *block) transcript() (text string, err error) {
	var lines []string
	prompts := slices.ContainsFunc(b.lines, func(line string) bool { return strings.HasPrefix(line, "> ") })
	for _, line := range b.lines {
		last := len(lines) - 1
		later, integer := laterLine.FindStringSubmatch(line), integerLine.FindStringSubmatch(line)
		switch {
		case line == "", strings.HasPrefix(line, " ") && !prompts:
		case commandLine.MatchString(line) && prompts == strings.HasPrefix(line, "> "):
			lines = append(lines, "> "+strings.TrimPrefix(line, "> "))
		case later != nil:
			lines = append(lines, "+"+later[1]+later[2][:1])
		case strings.HasPrefix(line, " "):
			lines[last] += " " + strings.TrimSpace(line)
		case integer != nil && strings.HasPrefix(lines[last], "  replies "):
			lines[last] += " " + integer[1]
		case integer != nil:
			lines = append(lines, "  replies "+integer[1])
		case last >= 0 && strings.HasPrefix(lines[last], "> INFO "): // the page shows one field of many
		case last >= 0 && strings.HasPrefix(lines[last], "> "):
			reply, _, _ := strings.Cut(line, "  ")
			lines = append(lines, "  replies "+reply)
		default:
			return "", fmt.Errorf("neither a call nor a reply: %q", line)
		}
	}
	return strings.Join(lines, "\n") + "\n", nil
}

// A section's calls are one transcript. It begins at 18:00 UTC.
func TestPages_calls(t *testing.T) {
	folder, sections := t.TempDir(), map[string]string{}
	for page := range runPages {
		for _, b := range blocksOf(t, page) {
			if !commandLine.MatchString(b.lines[0]) || len(b.lines) == 1 && strings.HasPrefix(b.lines[0], b.section+" ") { // a syntax
				continue
			}
			text, err := b.transcript()
			require.NoError(t, err, "%s: %s", page, b.lines[0])
			sections[page+" "+b.section] += text
		}
	}
	require.Greater(t, len(sections), 15)
	for i, name := range slices.Sorted(maps.Keys(sections)) {
		text := "# " + name + "\n+10h\n> CONFIG SET gothrottle.policies " + corpus.Quote(pagePolicies) + "\n" + sections[name]
		require.NoError(t, os.WriteFile(filepath.Join(folder, fmt.Sprint(i, ".txt")), []byte(text), 0o600))
	}
	runTranscripts(t, folder, corpus.Options{Partial: true})
}

// Shell lines and lines of a configuration file run as they are, but for paths and ports.
func TestPages_blocks(t *testing.T) {
	lasts(t)
	s := start(t, options{Args: []string{"--gothrottle.top-keys", "100"}})
	settings := append(slices.Collect(maps.Keys(s.ConfigGet(ctx, "*").Val())), "loadmodule")
	for page, elsewhere := range runPages {
		for _, b := range blocksOf(t, page) {
			text := strings.NewReplacer("/usr/lib/redis/modules/gothrottle.so", env.module, "127.0.0.1:6379", s.run.Addr).Replace(strings.Join(b.lines, "\n"))
			word, _, _ := strings.Cut(text, " ")
			var err error
			switch {
			case commandLine.MatchString(text), word == "user": // TestPages_calls and TestOperating_users
				continue
			case slices.Contains(settings, word):
				err = startWith(t, text)
			default:
				require.NoError(t, s.ConfigSet(ctx, "gothrottle.policies", pagePolicies).Err())
				err = s.runShell(text, elsewhere)
			}
			assert.NoError(t, err, "%s: %s", page, text)
		}
	}
}

// runShell runs lines by bash, but for those that another test runs. redis-cli talks to the server, and fails if a reply is an
// error.
func (s *server) runShell(text, elsewhere string) error {
	folder, script := s.t.TempDir(), "set -euo pipefail\n"
	cli := fmt.Sprintf("#!/bin/sh\nexec %s -e -p %s \"$@\"\n", redisCLI(s.t), s.run.Port)
	require.NoError(s.t, os.WriteFile(filepath.Join(folder, "redis-cli"), []byte(cli), 0o755))
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		if elsewhere == "" || !regexp.MustCompile(elsewhere).MatchString(line) {
			script += line
		}
	}
	run := exec.Command("bash", "-c", script)
	run.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"))
	if out, err := run.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// startWith starts a server with lines of a configuration file, and the module.
func startWith(t *testing.T, text string) error {
	if !strings.Contains(text, "loadmodule ") {
		text = "LOAD\n" + text
	}
	s, err := servers.Start(launch(configFile(t, text)))
	if err == nil {
		s.Close()
	}
	return err
}

// Every call within the text of a page works on a new key, and admits.
func TestPages_callsInTheText(t *testing.T) {
	s := start(t, options{})
	s.setPolicies(pagePolicies)
	inText := regexp.MustCompile("`((?:GO|CL)\\.[A-Z_]+ [^` ]+ [^`]*[0-9][^`]*)`")
	for page := range runPages {
		text, err := os.ReadFile("../" + page)
		require.NoError(t, err)
		for _, call := range inText.FindAllStringSubmatch(string(text), -1) {
			s.must("FLUSHALL")
			assert.Regexp(t, `^(\[0 [-0-9 \[\]]+\]|\d+|map\[.*\])$`, s.ask(call[1]), "%s: %s", page, call[1])
		}
	}
}

// make run starts a server with the module.
func TestPages_makeRun(t *testing.T) {
	lasts(t)
	port := servers.FreePort()
	run := exec.Command("make", "-C", "..", "run", "PORT="+port)
	run.Env = append(os.Environ(), "GOTHROTTLE_SERVER="+env.server)
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	run.Stdout, run.Stderr = log, log
	require.NoError(t, servers.StartGuarded(run))
	eventually(t, "make run is ready", func() bool {
		text, _ := os.ReadFile(log.Name())
		return strings.Contains(string(text), "\nready, ")
	})
	ask := func(words ...string) string {
		out, _ := exec.Command(redisCLI(t), append([]string{"-p", port}, words...)...).Output()
		return strings.Join(strings.Fields(string(out)), " ")
	}
	assert.Equal(t, "0 16 15 -1 2", ask("GO.THROTTLE", "user:42", "15", "30", "60"))
	ask("SHUTDOWN", "NOSAVE")
	assert.NoError(t, run.Wait())
}
