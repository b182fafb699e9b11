package examples

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gothrottle/commands/memory/resp"
)

// The clients decide as the server does, also while it fails. The adapters do what their frameworks ask of a store, also what
// no request of TestExamples asks.
func TestAdapters(t *testing.T) {
	const node = "../build/out/node/"
	for name, suite := range map[string][]string{
		"node":   {node + "node_modules/.bin/node", "--test", "--test-force-exit", node + "stores.test.js"},
		"client": {node + "node_modules/.bin/node", "--test", node + "client.test.js"},
		"python": {"../build/out/venv/bin/python", "-I", "../adapters/python/tests/storage_test.py"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, suite[0], suite[1:]...)
			cmd.Env = append(os.Environ(), deployments(t)...)
			cmd.Env = append(cmd.Env, failing(t)...)
			said, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", said)
		})
	}
}

// deployments starts a server, one with TLS, one without the module, a cluster, and a master that a Sentinel knows. The
// environment says where they are.
func deployments(t *testing.T) []string {
	script, err := filepath.Abs("../script/gothrottle.lua")
	require.NoError(t, err)
	now := stopped()
	plain := startServer(t, resp.Options{Now: now, Debug: true})
	secure := startServer(t, resp.Options{Now: now, TLS: true, Debug: true})
	bare := startServer(t, resp.Options{Now: now, Bare: true, Debug: true})
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, secure.CA(), 0o600))
	n, sockets, addrs := resp.NewNetwork(resp.Options{Now: now, Debug: true}), make([]net.Listener, 5), make([]string, 5)
	t.Cleanup(n.Close)
	for i := range addrs {
		sockets[i] = listen(t)
		addrs[i] = sockets[i].Addr().String()
	}
	n.NewCluster(addrs[:3]...)
	n.NewSentinel("main", n.Add(addrs[3]), addrs[4])
	for i, addr := range addrs {
		go n.Server(addr).Serve(sockets[i])
	}
	return []string{"ADDR=" + plain.Addr, "BARE=" + bare.Addr, "TLS=" + secure.Addr, "CA=" + ca,
		"CLUSTER=" + addrs[0], "SENTINEL=" + addrs[4], "SCRIPT=" + script}
}

// failing starts a server for each row of adapters/faults.json. A row says which fault begins after the first call for a key,
// what the next call is answered, and the least and the most that it takes. When the fault has ended, the server decides again.
func failing(t *testing.T) []string {
	file, err := filepath.Abs("../adapters/faults.json")
	require.NoError(t, err)
	var rows []any
	require.NoError(t, json.Unmarshal([]byte(read(t, file)), &rows))
	addrs := make([]string, len(rows))
	for i := range rows {
		addrs[i] = startServer(t, resp.Options{Debug: true}).Addr
	}
	return []string{"FAULTS=" + file, "SERVERS=" + strings.Join(addrs, " ")}
}
