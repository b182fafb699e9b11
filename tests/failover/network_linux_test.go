package failover

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"gothrottle/tests/server"
)

// network is two bridges and some hosts. Each host has a network namespace of its own, and so have the bridges: nothing
// reaches the machine's own network. All hosts begin at the bridge "main". Hosts at the bridge "island" are cut off from
// the others: packets are lost, and neither side is notified.
type network struct {
	t     *testing.T
	name  string
	hosts []*host
}

// hostOf returns the host of a server.
func hostOf(n *network, s *server.Server) *host {
	return n.hosts[slices.IndexFunc(n.hosts, func(h *host) bool { return h.ip == s.Host })]
}

// host is a namespace with one address.
type host struct {
	name string
	plug string   // the end of the host's cable that is in a bridge
	ip   string   // its address
	file *os.File // the namespace
}

// newNetwork makes a network without hosts. If the machine cannot have one, the test fails and says so: a run without
// partitions proves too little.
func newNetwork(t *testing.T, kind string) *network {
	t.Helper()
	n := &network{t: t, name: fmt.Sprintf("gothrottle-%d-%s", os.Getpid(), kind)}
	t.Cleanup(func() {
		for _, h := range n.hosts {
			h.file.Close()
			_ = ip("", "netns del "+h.name)
		}
		_ = ip("", "netns del "+n.name)
	})
	if err := ip("", "netns add "+n.name); err != nil {
		t.Fatalf("NO NETWORK NAMESPACES, so no partitions: this test needs root and the program ip: %v", err)
	}
	require.NoError(t, ip(n.name, "link add main type bridge", "link add island type bridge", "link set main up", "link set island up"))
	return n
}

// ip has the program ip run lines in a namespace, or in that of this process.
func ip(namespace string, lines ...string) error {
	cmd := exec.Command("ip", "-batch", "-")
	if namespace != "" {
		cmd.Args = append(cmd.Args, "-n", namespace)
	}
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip %q: %w: %s", lines, err, out)
	}
	return nil
}

// host adds a host to the bridge main.
func (n *network) host(name string) *host {
	n.t.Helper()
	h := &host{name: n.name + "-" + name, plug: fmt.Sprintf("p%d", len(n.hosts)), ip: fmt.Sprintf("10.77.0.%d", 10+len(n.hosts))}
	require.NoError(n.t, ip("", "netns add "+h.name))
	n.hosts = append(n.hosts, h)
	var err error
	h.file, err = os.Open("/var/run/netns/" + h.name)
	require.NoError(n.t, err)
	require.NoError(n.t, ip("", fmt.Sprintf("link add %s netns %s type veth peer name eth0 netns %s", h.plug, n.name, h.name)))
	require.NoError(n.t, ip(h.name, "addr add "+h.ip+"/24 dev eth0", "link set eth0 up", "link set lo up"))
	require.NoError(n.t, ip(n.name, "link set "+h.plug+" master main", "link set "+h.plug+" up"))
	return h
}

// move puts hosts at a bridge, all at once as nearly as can be.
func (n *network) move(bridge string, hosts ...*host) {
	n.t.Helper()
	var lines []string
	for _, h := range hosts {
		lines = append(lines, "link set "+h.plug+" master "+bridge)
	}
	require.NoError(n.t, ip(n.name, lines...))
}

// own is the namespace of this process.
var own, _ = os.Open("/proc/self/ns/net")

// dial connects from the host, on a thread that is in its namespace meanwhile. The connection stays there. Go-redis calls it.
func (h *host) dial(ctx context.Context, network, addr string) (conn net.Conn, err error) {
	runtime.LockOSThread()
	if err := unix.Setns(int(h.file.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, err
	}
	conn, err = new(net.Dialer).DialContext(ctx, network, addr)
	if e := unix.Setns(int(own.Fd()), unix.CLONE_NEWNET); e != nil {
		return nil, e // the goroutine stays locked, so its thread ends with it
	}
	runtime.UnlockOSThread()
	return conn, err
}
