package build_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The image's entrypoint adds the module to the server's arguments, unless the user or the configuration file names the
// module, or the server is a sentinel. It leaves other programs alone. A file names the module after CONFIG REWRITE, and a
// server that loads a module twice does not start.
func TestImage_entrypointLoadsTheModule(t *testing.T) {
	const module = "/usr/lib/redis/modules/gothrottle.so"
	const load = " --loadmodule " + module
	folder := t.TempDir()
	write(t, filepath.Join(folder, "docker-entrypoint.sh"), "#!/bin/sh\necho \"$@\"\n")
	write(t, filepath.Join(folder, "redis-server"), "#!/bin/sh\n")
	for name, text := range map[string]string{"bare": "port 6379\n# loadmodule " + module + "\nloadmodule /other.so\n", "loads": "port 6379\n  LoadModule\t\"" + module + "\" x y\n"} {
		write(t, filepath.Join(folder, name+".conf"), text)
	}
	for args, want := range map[string]string{
		"":                               "redis-server" + load,
		"--maxmemory 1gb":                "redis-server --maxmemory 1gb" + load,
		"bare.conf":                      "redis-server bare.conf" + load,
		"loads.conf":                     "redis-server loads.conf",
		"valkey-server bare.conf":        "valkey-server bare.conf" + load,
		"valkey-server loads.conf":       "valkey-server loads.conf",
		"--dir loads.conf":               "redis-server --dir loads.conf" + load,
		"redis-server" + load + " x y":   "redis-server" + load + " x y",
		"redis-server s.conf --sentinel": "redis-server s.conf --sentinel",
		"redis-cli ping":                 "redis-cli ping",
	} {
		script, err := filepath.Abs("image-entrypoint.sh")
		if err != nil {
			t.Fatal(err)
		}
		command := exec.Command("sh", append([]string{script}, strings.Fields(args)...)...)
		command.Dir, command.Env = folder, append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"))
		if out, err := command.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != want {
			t.Errorf("%q: %s, %v, want %s", args, out, err, want)
		}
	}
}

// Nothing listens on an address of the network: scripts and pages publish ports and start servers on 127.0.0.1.
func TestScripts_listenLocally(t *testing.T) {
	files, err := filepath.Glob("*.sh")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range append(files, "../docs/install.md", "../deploy/compose.yaml") {
		for _, m := range regexp.MustCompile(`(?:--publish|docker run -p|dockerd --ip|ports:\n +-)[ "]+(\S+)|--bind ([\d*:].*)`).FindAllStringSubmatch(read(t, "build/"+file), -1) {
			found++
			if !strings.HasPrefix(m[1]+m[2], "127.0.0.1") {
				t.Errorf("%s listens on %s", file, m[1]+m[2])
			}
		}
	}
	if found < 5 {
		t.Errorf("%d places found", found)
	}
}
