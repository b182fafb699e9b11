package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The image's entrypoint adds the module to the server's arguments, unless the user named the module
// or the server is a sentinel. It leaves other programs alone.
func TestScript_entrypointLoadsTheModule(t *testing.T) {
	s := copyScripts(t, []string{"build/image-entrypoint.sh"}, []string{"docker-entrypoint.sh", "redis-server"})
	const load = " --loadmodule /usr/lib/redis/modules/gothrottle.so"
	for args, want := range map[string]string{
		"":                                "redis-server" + load,
		"--maxmemory 1gb":                 "redis-server --maxmemory 1gb" + load,
		"/etc/redis.conf":                 "redis-server /etc/redis.conf" + load,
		"redis-server --appendonly yes":   "redis-server --appendonly yes" + load,
		"valkey-server":                   "valkey-server" + load,
		"redis-server" + load + " x y":    "redis-server" + load + " x y",
		"redis-server /s.conf --sentinel": "redis-server /s.conf --sentinel",
		"redis-cli ping":                  "redis-cli ping",
	} {
		s.entrypoint(args, want)
	}
}

// The entrypoint adds nothing if the configuration file loads the module, as it does after CONFIG
// REWRITE: a server that is told twice to load a module does not start.
func TestScript_entrypointReadsTheConfigurationFile(t *testing.T) {
	s := copyScripts(t, []string{"build/image-entrypoint.sh"}, []string{"docker-entrypoint.sh", "redis-server", "valkey-server"})
	const module = "/usr/lib/redis/modules/gothrottle.so"
	for text, loads := range map[string]bool{
		"":                              false,
		"port 6379\n":                   false,
		"# loadmodule " + module + "\n": false,
		"loadmodule /other.so\n":        false,
		"include " + module + "\n":      false,
		"port 6379\nloadmodule " + module + "\ndir /data\n": true,
		"loadmodule " + module:                              true,
		"  LoadModule\t\"" + module + "\" x y\n":            true,
		"loadmodule /modules/gothrottle.so\n":               true,
	} {
		s.write("server.conf", text)
		for _, args := range []string{"server.conf", "redis-server server.conf", "valkey-server server.conf --port 1"} {
			want := args
			if args == "server.conf" {
				want = "redis-server " + args
			}
			if !loads {
				want += " --loadmodule " + module
			}
			s.entrypoint(args, want)
		}
		// Only the first argument is a configuration file.
		s.entrypoint("--dir server.conf", "redis-server --dir server.conf --loadmodule "+module)
	}
}

// entrypoint starts the image's entrypoint and checks what the entrypoint starts.
func (s *scripts) entrypoint(args, want string) {
	s.t.Helper()
	s.write("start", "#!/bin/sh\nexec build/image-entrypoint.sh "+args+"\n")
	if calls, out, ok := s.run("start"); !ok || !slices.Equal(calls, []string{"docker-entrypoint.sh " + want}) {
		s.t.Errorf("%q: %q, %s", args, calls, out)
	}
}

// The init container's command copies the module as a file that may be executed, into the folder that
// it is given. The copy takes the place of an older one, which a server may have mapped.
func TestScript_initCopiesTheModule(t *testing.T) {
	s := copyScripts(t, []string{"build/image-init.sh"}, nil)
	text, err := os.ReadFile(s.path("build/image-init.sh"))
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.NewReplacer("/gothrottle.so \"", s.path("gothrottle.so")+" \"", ":-/modules}", ":-"+s.path("modules")+"}").Replace(string(text)))
	s.write("build/image-init.sh", string(text))
	s.write("gothrottle.so", "new\n")
	for _, folder := range []string{"modules", "other"} {
		s.write(folder+"/gothrottle.so", "old\n")
		if err := os.Link(s.path(folder+"/gothrottle.so"), s.path(folder+"/mapped")); err != nil {
			t.Fatal(err)
		}
		args := s.path(folder)
		if folder == "modules" {
			args = ""
		}
		s.write("start", "#!/bin/sh\numask 077\nexec build/image-init.sh "+args+"\n")
		_, out, ok := s.run("start")
		copied, err := os.Stat(s.path(folder + "/gothrottle.so"))
		if !ok || err != nil || copied.Mode() != 0o755 {
			t.Fatalf("%s, %v, %v", out, copied, err)
		}
		copiedText, _ := os.ReadFile(s.path(folder + "/gothrottle.so"))
		mapped, _ := os.ReadFile(s.path(folder + "/mapped"))
		left, _ := os.ReadDir(s.path(folder))
		if string(copiedText) != "new\n" || string(mapped) != "old\n" || len(left) != 2 {
			t.Errorf("%s: copied %q, mapped %q, %v", folder, copiedText, mapped, left)
		}
	}
	s.write("start", "#!/bin/sh\nexec build/image-init.sh none\n")
	if _, out, ok := s.run("start"); ok {
		t.Errorf("a folder that does not exist: %s", out)
	}
}

// A program that is copied into the image may be executed, whatever the mode in the clone was.
func TestDockerfile_copiedScriptsMayBeExecuted(t *testing.T) {
	text := strings.Join(readLines(t, "Dockerfile"), "\n")
	copied := regexp.MustCompile(`COPY --from=build /src/(\S+\.sh) `).FindAllStringSubmatch(text, -1)
	for _, m := range copied {
		if !regexp.MustCompile("chmod 0755 .*" + m[1]).MatchString(text) {
			t.Errorf("%s has the mode that it has in the clone", m[1])
		}
	}
	if len(copied) != 2 {
		t.Errorf("%d scripts are copied", len(copied))
	}
}
