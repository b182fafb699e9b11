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
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

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

// setNamespace is the number of the system call setns, which the package syscall lacks on amd64.
var setNamespace = map[string]uintptr{"amd64": 308, "arm64": 268}[runtime.GOARCH]

// newNetwork makes a network without hosts. If the machine cannot have one, the test fails and says so: a run without
// partitions proves too little.
func newNetwork(t *testing.T, kind string) *network {
	t.Helper()
	n := &network{t: t, name: fmt.Sprintf("gothrottle-%d-%s", os.Getpid(), kind)}
	t.Cleanup(func() {
		for _, h := range n.hosts {
			h.file.Close()
			_ = ip("netns del " + h.name)
		}
		_ = ip("netns del " + n.name)
	})
	if err := ip("netns add " + n.name); err != nil || setNamespace == 0 {
		t.Fatalf("NO NETWORK NAMESPACES, so no partitions: this test needs root, Linux on amd64 or arm64, and the program ip: %v", err)
	}
	require.NoError(t, ip("-n "+n.name+" link add main type bridge", "-n "+n.name+" link add island type bridge",
		"-n "+n.name+" link set main up", "-n "+n.name+" link set island up"))
	return n
}

// ip runs lines of arguments of the program ip.
func ip(lines ...string) error {
	for _, line := range lines {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s", line, err, out)
		}
	}
	return nil
}

// host adds a host to the bridge main.
func (n *network) host(name string) *host {
	n.t.Helper()
	h := &host{name: n.name + "-" + name, plug: fmt.Sprintf("p%d", len(n.hosts)), ip: fmt.Sprintf("10.77.0.%d", 10+len(n.hosts))}
	require.NoError(n.t, ip("netns add "+h.name))
	file, err := os.Open("/var/run/netns/" + h.name)
	require.NoError(n.t, err)
	h.file = file
	n.hosts = append(n.hosts, h)
	require.NoError(n.t, ip(fmt.Sprintf("link add %s netns %s type veth peer name eth0 netns %s", h.plug, n.name, h.name),
		"-n "+h.name+" addr add "+h.ip+"/24 dev eth0", "-n "+h.name+" link set eth0 up", "-n "+h.name+" link set lo up",
		"-n "+n.name+" link set "+h.plug+" master main", "-n "+n.name+" link set "+h.plug+" up"))
	return h
}

// move puts hosts at a bridge, all at once as nearly as can be.
func (n *network) move(bridge string, hosts ...*host) {
	n.t.Helper()
	var lines strings.Builder
	for _, h := range hosts {
		fmt.Fprintf(&lines, "link set %s master %s\n", h.plug, bridge)
	}
	cmd := exec.Command("ip", "-n", n.name, "-batch", "-")
	cmd.Stdin = strings.NewReader(lines.String())
	out, err := cmd.CombinedOutput()
	require.NoError(n.t, err, "%s", out)
}

// own is the namespace of this process.
var own, _ = os.Open("/proc/self/ns/net")

// dial connects from the host, on a thread that is in its namespace meanwhile. The connection stays there. Go-redis calls it.
func (h *host) dial(ctx context.Context, network, addr string) (conn net.Conn, err error) {
	runtime.LockOSThread()
	if err := enter(h.file); err != nil {
		return nil, err
	}
	conn, err = new(net.Dialer).DialContext(ctx, network, addr)
	if e := enter(own); e != nil {
		return nil, e // the goroutine stays locked, so its thread ends with it
	}
	runtime.UnlockOSThread()
	return conn, err
}

func enter(namespace *os.File) error {
	if _, _, errno := syscall.RawSyscall(setNamespace, namespace.Fd(), syscall.CLONE_NEWNET, 0); errno != 0 {
		return fmt.Errorf("setns: %w", errno)
	}
	return nil
}
