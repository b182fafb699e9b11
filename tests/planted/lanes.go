package main

import (
	"context"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// A lane is tests that run together. The lanes run in their order until one finds the defect. To add a lane, add a row.
type lane struct {
	name    string
	limit   time.Duration  // a lane that takes longer has found the defect
	folders *regexp.Regexp // of the defects that it may find
	steps   []string       // shell commands; one that fails has found the defect. None: see tested
}

var (
	all      = regexp.MustCompile(``)
	module   = regexp.MustCompile(`^(funnel|commands|cgo)$`)
	boundary = regexp.MustCompile(`^cgo$`)
	gateways = regexp.MustCompile(`^gateway`)
	root     = regexp.MustCompile(`^(funnel|commands|cgo|script|throttle)`)
	scripts  = regexp.MustCompile(`^script/src$`)
)

var lanes = []lane{
	{"corpus", 10 * time.Minute, module, []string{goTest + "-timeout 3m -run Corpus ./commands ./cgo"}},
	{"script", 20 * time.Minute, scripts, []string{"build/module.sh", onServer + "-timeout 15m -run 'TestCorpus_script|TestScript_' ./tests"}},
	{"unit", 20 * time.Minute, all, nil},
	{"asan", 20 * time.Minute, boundary, []string{sanitized + goTest + "-timeout 15m -asan ./cgo"}},
	{"black-box", 30 * time.Minute, module, []string{"build/module.sh", onServer + "-timeout 20m ./tests"}},
	{"gateway", 10 * time.Minute, gateways, []string{inGateway + "./internal/...", inGateway + ".", inGateway + "-run '^TestWorld$' . -seeds 600"}},
	{"proxies", 15 * time.Minute, gateways, []string{"build/test-gateway.sh"}},
	{"client", 10 * time.Minute, root, []string{"build/module.sh", onServer + "-timeout 5m -run Server_ ./throttle"}},
	{"chaos", 15 * time.Minute, boundary, []string{"CHAOS_SECONDS=30 build/test-chaos.sh"}},
}

const (
	goTest    = "go test -vet=off -count=1 -failfast "
	inGateway = "go -C gateway test -vet=off -count=1 -failfast -short -timeout 5m "
	onServer  = "GOTHROTTLE_MODULE=$PWD/build/out/gothrottle.so " + goTest
	sanitized = "CGO_CFLAGS='-g -O2 -fsanitize=undefined -fno-sanitize-recover=all' CGO_LDFLAGS='-fsanitize=undefined' "
)

// tested is the packages whose tests run the code of a folder: its own first, then quick ones first.
var tested = map[string]string{
	"funnel":                  "funnel/... commands/... " + clients + " cgo/... throttle",
	"commands":                "commands/... " + clients + " cgo/... throttle",
	"commands/memory":         "commands",
	"commands/memory/resp":    "commands/memory/resp tests/clients",
	"cgo":                     "cgo/...",
	"throttle":                "throttle " + clients + " tests/clients",
	"throttle/internal/local": "throttle/internal/local throttle " + clients + " tests/clients",
	"throttle/internal/wire":  "throttle/internal/wire throttle tests/clients",
	"throttle/redisrate":      "throttle/redisrate",
	"throttle/throttlehttp":   "throttle/throttlehttp",
	"throttle/throttletest":   clients + " throttle",
}

const clients = "throttle/throttletest throttle/throttlehttp throttle/redisrate"

// of returns the steps for a defect in a folder.
func (l *lane) of(folder string) []string {
	switch {
	case !l.folders.MatchString(folder):
		return nil
	case l.steps != nil:
		return l.steps
	}
	var steps []string
	for _, name := range strings.Fields(tested[folder]) {
		steps = append(steps, goTest+"-timeout 6m ./"+name)
	}
	return steps
}

// test runs lanes in a copy until one finds the defect in a file of a folder. found is that lane, "survived" if none finds it, or
// "error" if the defect does not compile; how says what failed.
func test(ctx context.Context, copied, folder string) (found, how string) {
	for _, l := range lanes {
		limited, cancel := context.WithTimeout(ctx, l.limit)
		defer cancel()
		for _, step := range l.of(folder) {
			out, err := shell(limited, copied, step).CombinedOutput()
			switch {
			case limited.Err() != nil:
				return l.name, "time limit"
			case uncompiled.Match(out):
				return "error", strings.Join(strings.Fields(string(out)), " ")
			case err != nil:
				return l.name, shows(string(out))
			}
		}
	}
	return "survived", ""
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
