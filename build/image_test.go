package build_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
		require.NoError(t, err)
		words := append([]string{"env", "PATH=" + folder + ":" + os.Getenv("PATH"), "sh", script}, strings.Fields(args)...)
		assert.Equal(t, want+"\n", runIn(t, folder, words...), args)
	}
}

// Nothing listens on an address of the network: scripts and pages publish ports and start servers on 127.0.0.1.
func TestScripts_listenLocally(t *testing.T) {
	files, err := filepath.Glob("*.sh")
	require.NoError(t, err)
	found := 0
	for _, file := range append(files, "../docs/install.md", "../deploy/compose.yaml") {
		for _, m := range regexp.MustCompile(`(?:--publish|docker run -p|dockerd --ip|ports:\n +-)[ "]+(\S+)|--bind ([\d*:].*)`).FindAllStringSubmatch(read(t, "build/"+file), -1) {
			found++
			assert.Regexp(t, `^127\.0\.0\.1`, m[1]+m[2], file)
		}
	}
	assert.GreaterOrEqual(t, found, 5)
}
