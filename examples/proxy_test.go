package examples

import (
	"math"
	"net"
	"regexp"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// proxy is between an example and its server. Its connections can go silent, as through a NAT table that forgot them or
// on a paused machine: the proxy swallows what comes from both sides, and closes nothing.
type proxy struct {
	addr      string
	opened    atomic.Int64 // connections so far
	silent    atomic.Int64 // connections up to this one are silent until a side closes them
	swallowed atomic.Int64 // calls on silent connections
	cut       atomic.Bool  // the next call reaches the server, and its connection ends before the reply
}

func newProxy(t *testing.T, server string) *proxy {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	x := &proxy{addr: listener.Addr().String()}
	go func() {
		for client, err := listener.Accept(); err == nil; client, err = listener.Accept() {
			if upstream, err := net.Dial("tcp", server); err == nil {
				x.join(x.opened.Add(1), client, upstream)
			}
		}
	}()
	return x
}

// silence makes the open connections silent; mute those too that begin before the next silence.
func (x *proxy) silence() { x.silent.Store(x.opened.Load()) }
func (x *proxy) mute()    { x.silent.Store(math.MaxInt64) }

// oneCall is the beginning of a call, or of a script that makes one.
var oneCall = regexp.MustCompile(`(?i)\*\d+\r\n\$\d+\r\n(go\.|eval)`)

// join forwards between the two ends of connection n.
func (x *proxy) join(n int64, client, server net.Conn) {
	var cut atomic.Bool
	forward := func(from, to net.Conn) {
		defer from.Close()
		defer to.Close()
		for data := make([]byte, 1<<16); ; {
			size, err := from.Read(data)
			if err != nil || from == server && cut.Load() {
				return
			}
			calls := len(oneCall.FindAll(data[:size], -1)) // there are none in replies
			if n <= x.silent.Load() {
				x.swallowed.Add(int64(calls))
				continue
			}
			if calls > 0 && x.cut.CompareAndSwap(true, false) {
				cut.Store(true)
			}
			_, _ = to.Write(data[:size])
		}
	}
	go forward(client, server)
	go forward(server, client)
}
