package main

import (
	"archive/zip"
	"bytes"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	servers "gothrottle/tests/server"
)

const (
	publicPath    = "example.com/gothrottle"
	publicVersion = "v0.0.1"
)

// A renamed copy of the repository, served by a Go module proxy, is all that a new Go module needs to
// follow docs/go.md: its go get line, then its program. The program limits requests as the page says.
func TestGoGet(t *testing.T) {
	servers.Needed(t, "test-server")
	sources := copySources(t)
	if modulePath(t) != publicPath {
		rename(t, sources, publicPath)
	}
	command, program := firstSteps(t, filepath.Join(sources, "docs/go.md"))
	s, httpAddr := servers.New(t, servers.Options{}), "127.0.0.1:"+servers.FreePort()
	program = strings.NewReplacer("127.0.0.1:6379", s.Addr, "127.0.0.1:8080", httpAddr).Replace(program)

	user := newUser(t, writeProxy(t, sources))
	user.run("go", "mod", "init", "service")
	user.run(command...)
	change(t, user.folder, "main.go", func(string) string { return program })
	user.run("go", "vet", "./...")
	user.run("go", "build", "-o", "service", ".")
	user.wantOnlyGoRedis()

	start(t, httpAddr, filepath.Join(user.folder, "service"))
	wantLimited(t, "http://"+httpAddr, s)
}

// wantLimited fails if the program does not serve 15 requests and deny the next one. On a busy machine a
// call may last longer than its limit, and then its request goes on and takes nothing: so there are several
// attempts, each on an empty server.
func wantLimited(t *testing.T, url string, s *servers.Server) {
	t.Helper()
	served := 0
	for attempt := 0; attempt < 30 && served != 15; attempt++ {
		if _, err := s.Do("FLUSHALL"); err != nil {
			t.Fatal(err)
		}
		for served = 0; served < 30; served++ {
			response, err := http.Get(url)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			if response.StatusCode != http.StatusOK {
				break
			}
		}
	}
	if served != 15 {
		t.Errorf("the program serves %d requests at once, want 15", served)
	}
}

// firstSteps returns the go get command and the program of the page.
func firstSteps(t *testing.T, name string) (command []string, program string) {
	t.Helper()
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile(`(?m)^    (go get .*)$`).FindAllSubmatch(page, -1)
	programs := regexp.MustCompile("(?s)```go\n(package main\n.*?)```").FindAllSubmatch(page, -1)
	if len(commands) != 1 || len(programs) != 1 {
		t.Fatalf("the page has %d go get lines and %d programs, want one of each", len(commands), len(programs))
	}
	return strings.Fields(string(commands[0][1])), string(programs[0][1])
}

// writeProxy writes the root module of the sources as a Go module proxy serves it, and returns the
// proxy's folder.
func writeProxy(t *testing.T, sources string) string {
	t.Helper()
	mod, err := os.ReadFile(filepath.Join(sources, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	proxy := t.TempDir()
	versions := filepath.Join(proxy, publicPath, "@v")
	if err := os.MkdirAll(versions, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"list":                  publicVersion + "\n",
		publicVersion + ".info": `{"Version":"` + publicVersion + `"}`,
		publicVersion + ".mod":  string(mod),
		publicVersion + ".zip":  packModule(t, os.DirFS(sources)),
	} {
		change(t, versions, name, func(string) string { return text })
	}
	return proxy
}

// packModule returns the archive of the root module. The module must hold only texts, and no big ones.
func packModule(t *testing.T, root fs.FS) string {
	t.Helper()
	var packed bytes.Buffer
	archive := zip.NewWriter(&packed)
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			// A folder with a go.mod is another module.
			if _, err := fs.Stat(root, name+"/go.mod"); err == nil && name != "." {
				return fs.SkipDir
			}
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		if len(text) > 512<<10 || !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
			t.Errorf("%s is big or no text: %d bytes", name, len(text))
		}
		file, err := archive.Create(publicPath + "@" + publicVersion + "/" + name)
		if err != nil {
			return err
		}
		_, err = file.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil || packed.Len() > 2<<20 {
		t.Errorf("the module's archive has %d bytes, %v", packed.Len(), err)
	}
	return packed.String()
}

// user is somebody with an empty folder, whose go command knows the proxy.
type user struct {
	t      *testing.T
	folder string
	env    []string
}

// newUser gives the user a module cache without an old copy of this module. Other modules come from
// this machine's cache: the go command has checked them against go.sum. With
// -trimpath the folders' names do not matter to the build cache, so the next run compiles little.
func newUser(t *testing.T, proxy string) *user {
	t.Helper()
	if out, err := goIn("..", "mod", "download"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cache, err := goIn("..", "env", "GOMODCACHE")
	if err != nil {
		t.Fatal(err)
	}
	return &user{t, t.TempDir(), append(os.Environ(), "GOMODCACHE="+t.TempDir(), "GOFLAGS=-modcacherw -trimpath", "GOSUMDB=off", "GOWORK=off",
		"GOPROXY=file://"+proxy+",file://"+strings.TrimSpace(cache)+"/cache/download")}
}

func (u *user) run(words ...string) (out string) {
	u.t.Helper()
	command := exec.Command(words[0], words[1:]...)
	command.Dir, command.Env = u.folder, u.env
	b, err := command.CombinedOutput()
	if err != nil {
		u.t.Fatalf("%q: %v\n%s", words, err, b)
	}
	return string(b)
}

// wantOnlyGoRedis fails if the program holds a module that neither go-redis nor this repository has.
func (u *user) wantOnlyGoRedis() {
	u.t.Helper()
	modules := func(name string) []string {
		names := strings.Fields(u.run("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", name))
		slices.Sort(names)
		return slices.Compact(names)
	}
	allowed := append(modules("github.com/redis/go-redis/v9"), "service", publicPath)
	got := modules(".")
	if !slices.Contains(got, publicPath) {
		u.t.Errorf("the program holds %q", got)
	}
	for _, name := range got {
		if !slices.Contains(allowed, name) {
			u.t.Errorf("the program holds %s", name)
		}
	}
}

// start starts a program and waits until it listens at addr. The program ends with the test.
func start(t *testing.T, addr, program string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), program)
	command.Stderr = t.Output()
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Wait() })
	err := servers.Await("the program listens", func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
