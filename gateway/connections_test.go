package main

import (
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// pipes is a listener without sockets.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if conn := <-p; conn != nil {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// ending reports when the server has closed its end.
type ending struct {
	net.Conn
	ended context.CancelFunc
}

func (e ending) Close() error {
	e.ended()
	return e.Conn.Close()
}

// vanishing is a client's end that loses all once it has gone.
type vanishing struct {
	net.Conn
	gone context.Context
}

func (v vanishing) Write(p []byte) (int, error) {
	if v.gone.Err() != nil {
		return len(p), nil
	}
	return v.Conn.Write(p)
}

// The server ends connections of clients that are slow, silent or gone, and keeps an idle one for longer than a proxy does.
func TestConnections(t *testing.T) {
	const ask = "GET /check HTTP/1.1\r\nHost: h\r\n"
	says := func(text string) func(net.Conn) { return func(conn net.Conn) { _, _ = io.WriteString(conn, text) } }
	drips := func(text string) func(net.Conn) {
		return func(conn net.Conn) {
			for _, c := range text {
				time.Sleep(900 * time.Millisecond)
				if _, err := conn.Write([]byte{byte(c)}); err != nil {
					return
				}
			}
		}
	}
	reads := func(say func(net.Conn)) func(net.Conn) {
		return func(conn net.Conn) { go func() { _, _ = io.Copy(io.Discard, conn) }(); say(conn) }
	}
	var client *grpc.ClientConn
	greets := func(conn net.Conn) { // and calls, and is gone
		var err error
		gone, vanish := context.WithCancel(context.Background())
		client, err = grpc.NewClient("passthrough:gateway", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithIdleTimeout(0),
			grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return vanishing{conn, gone}, nil }))
		if err == nil {
			_ = client.Invoke(context.Background(), "/none/none", nil, nil)
		}
		vanish()
	}
	for name, one := range map[string]struct {
		does        func(net.Conn)
		grpc        bool
		least, most time.Duration
	}{
		"HTTP, silent":                           {does: reads(says("")), most: 10 * time.Second},
		"HTTP, half a line":                      {does: reads(says("GET /che")), most: 10 * time.Second},
		"HTTP, headers without end":              {does: reads(drips(ask + strings.Repeat("A: b\r\n", 99))), most: 10 * time.Second},
		"HTTP, a body that does not come":        {does: reads(says("POST /settle HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n")), most: 10 * time.Second},
		"HTTP, a body in drips":                  {does: reads(drips("POST /settle HTTP/1.1\r\nHost: h\r\nContent-Length: 999\r\n\r\n" + strings.Repeat("x", 999))), most: 100 * time.Second},
		"HTTP, answers that nobody reads":        {does: says(ask + "\r\n"), most: time.Minute},
		"HTTP, idle between requests":            {does: reads(says(ask + "\r\n")), least: 121 * time.Second, most: 5 * time.Minute},
		"HTTP, gone":                             {does: func(conn net.Conn) { says(ask)(conn); _ = conn.Close() }, most: time.Millisecond},
		"gRPC, silent":                           {does: reads(says("")), grpc: true, most: 10 * time.Second},
		"gRPC, a greeting in drips":              {does: reads(drips("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")), grpc: true, most: 10 * time.Second},
		"gRPC, gone without a word after a call": {does: greets, grpc: true, most: 6 * time.Minute},
	} {
		bubble(t, func(t *testing.T) {
			g, listener := inside(t, inMemory(t), ours), make(pipes)
			handler, _, _ := g.answers.Handlers()
			web, rpc := webServer(handler), g.grpcServer()
			var serving sync.WaitGroup
			serving.Go(func() {
				if one.grpc {
					_ = rpc.Serve(listener)
				} else {
					_ = web.Serve(listener)
				}
			})
			theirs, ours := net.Pipe()
			defer func() {
				if client != nil {
					_ = client.Close()
				}
				client = nil
				_ = theirs.Close()
				close(listener)
				serving.Wait()
				_ = web.Close()
				rpc.Stop()
			}()
			open, ended := context.WithCancel(context.Background())
			began := time.Now()
			listener <- ending{ours, ended}
			go one.does(theirs)
			select {
			case <-open.Done():
				require.GreaterOrEqual(t, time.Since(began), one.least, name)
			case <-time.After(one.most + time.Millisecond):
				require.Fail(t, "the connection stays", "%s, for %s", name, one.most)
			}
		})
	}
}
