package main

import (
	"context"
	"fmt"
	"os/exec"
	"path"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// A lane is tests that run together. The lanes run in their order until one finds the defect. To add a lane, add a row.
type lane struct {
	name  string
	limit time.Duration                // a lane that takes longer has found the defect
	steps func(folder string) []string // shell commands for a defect in this folder; one that fails has found the defect
}

var lanes = []lane{
	{"corpus", 10 * time.Minute, transcripts},
	{"unit", 20 * time.Minute, unit},
	{"asan", 20 * time.Minute, asan},
	{"black-box", 30 * time.Minute, blackBox},
	{"chaos", 15 * time.Minute, chaos},
}

// tested is the packages whose tests run the code of a folder: its own first, then quick ones first.
var tested = map[string]string{
	"funnel":                "funnel/... commands/... " + clients + " cgo/... throttle",
	"commands":              "commands/... " + clients + " cgo/... throttle",
	"cgo":                   "cgo/...",
	"throttle":              "throttle " + clients,
	"throttle/redisrate":    "throttle/redisrate",
	"throttle/throttlehttp": "throttle/throttlehttp",
	"throttle/throttletest": clients + " throttle",
}

const (
	clients = "throttle/throttletest throttle/throttlehttp throttle/redisrate"
	goTest  = "go test -vet=off -count=1 -failfast "
)

func inModule(folder string) bool { return !strings.HasPrefix(folder, "throttle") }

// transcripts runs tests/corpus in memory, and on the server made of C.
func transcripts(folder string) []string {
	if !inModule(folder) {
		return nil
	}
	return []string{goTest + "-timeout 3m -run Corpus ./commands ./cgo"}
}

func unit(folder string) (steps []string) {
	for _, name := range strings.Fields(tested[folder]) {
		steps = append(steps, goTest+"-timeout 6m ./"+name)
	}
	return steps
}

// asan is what make test-unit runs with the address checker.
func asan(folder string) []string {
	if folder != "cgo" {
		return nil
	}
	return []string{"CGO_CFLAGS='-g -O2 -fsanitize=undefined -fno-sanitize-recover=all' CGO_LDFLAGS='-fsanitize=undefined' " +
		goTest + "-timeout 15m -asan ./cgo"}
}

// blackBox is what make test-server runs.
func blackBox(folder string) []string {
	const test = "GOTHROTTLE_MODULE=$PWD/build/out/gothrottle.so " + goTest
	steps := []string{"build/module.sh"}
	if inModule(folder) {
		steps = append(steps, test+"-timeout 20m ./tests")
	}
	return append(steps, test+"-timeout 5m -run Server_ ./throttle")
}

func chaos(folder string) []string {
	if !inModule(folder) {
		return nil
	}
	return []string{"CHAOS_SECONDS=30 build/test-chaos.sh"}
}

// run runs lanes until one finds the defect in this file. found is that lane, "" if none finds it; how says what failed.
func run(ctx context.Context, copied string, chosen []lane, file string) (found, how string, err error) {
	for _, l := range chosen {
		limited, cancel := context.WithTimeout(ctx, l.limit)
		defer cancel()
		for _, step := range l.steps(path.Dir(file)) {
			out, err := shell(limited, copied, step).CombinedOutput()
			switch {
			case limited.Err() != nil:
				return l.name, "time limit", ctx.Err()
			case uncompiled.Match(out):
				return "", "", fmt.Errorf("it does not compile: %s", out)
			case err != nil:
				return l.name, shows(string(out)), nil
			}
		}
	}
	return "", "", nil
}

// shell makes a command. When the context ends, the command and the servers that it started are killed.
func shell(ctx context.Context, folder, command string) *exec.Cmd {
	c := exec.CommandContext(ctx, "sh", "-c", command)
	c.Dir, c.WaitDelay = folder, 5*time.Second
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	return c
}

var uncompiled = regexp.MustCompile(`\[(build|setup) failed\]`)

// failure finds the failed test in a step's output: by its result, its time limit, or its name in the trace of a crash.
var failure = regexp.MustCompile(`--- FAIL: \S+|running tests:\s+\S+|\.Test\w+\(|\w+Sanitizer: \S+|.* steps are left.*`)

func shows(out string) string {
	found := failure.FindString(out)
	if found == "" { // the last line may say more than nothing
		lines := strings.Split(strings.TrimSpace(out), "\n")
		found = lines[len(lines)-1]
	}
	found = strings.NewReplacer("--- FAIL: ", "", "running tests:", "too slow:", "|", "/").Replace(found)
	return strings.Trim(strings.Join(strings.Fields(found), " "), ".(")
}
