package examples

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	servers "gothrottle/tests/server"
)

// The adapters do what their frameworks ask of a store, also what no request of TestExamples asks.
func TestAdapters(t *testing.T) {
	for name, suite := range map[string][]string{
		"node": {"../build/out/node/node_modules/.bin/node", "--test", "--test-force-exit", "../build/out/node/stores.test.js"},
		"@fastify/rate-limit": {"../build/out/node/node_modules/.bin/node", "--test-skip-pattern=/exceed|backoff|throw/i",
			"../build/out/node/fastify-suite.cjs"}, // we have no continueExceeding, and errors are 503
		"python": {"../build/out/venv/bin/python", "-I", "../adapters/python/tests/storage_test.py"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env, s := deployments(t)
			require.True(t, tried(func(int) bool { // on a slow machine the time limit of a call may end any attempt
				s.do("FLUSHALL")
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				cmd := exec.CommandContext(ctx, suite[0], suite[1:]...)
				cmd.Env = append(os.Environ(), env...)
				said, err := cmd.CombinedOutput()
				t.Logf("%s", said)
				return err == nil
			}))
		})
	}
}

// deployments starts a server that also listens for TLS, a Sentinel that knows it, a cluster, and a server without the module.
// The environment says where they are.
func deployments(t *testing.T) (env []string, s *server) {
	folder, port := t.TempDir(), servers.FreePort()
	key, cert := filepath.Join(folder, "key"), filepath.Join(folder, "cert")
	made, err := exec.Command("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert,
		"-subj", "/CN=gothrottle", "-addext", "subjectAltName=IP:127.0.0.1").CombinedOutput()
	require.NoError(t, err, "%s", made)
	s = startServer(t, servers.Options{Args: []string{"--tls-port", port, "--tls-key-file", key, "--tls-cert-file", cert,
		"--tls-auth-clients", "no"}})
	host, plain, err := net.SplitHostPort(s.Addr)
	require.NoError(t, err)
	sentinel := servers.New(t, servers.Options{Sentinel: []string{"sentinel monitor main " + host + " " + plain + " 1"}})
	cluster := servers.NewCluster(t, 3, 0, servers.Options{})
	bare := servers.New(t, servers.Options{Bare: true})
	script, err := filepath.Abs("../script/gothrottle.lua")
	require.NoError(t, err)
	return []string{"BARE=" + bare.Addr, "SCRIPT=" + script, "ADDR=" + s.Addr, "TLS=" + net.JoinHostPort(host, port), "CA=" + cert, "SENTINEL=" + sentinel.Addr,
		"CLUSTER=" + cluster[0].Addr}, s
}
