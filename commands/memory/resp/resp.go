// Package resp is a server in memory that speaks RESP2 and RESP3: the module's commands and the script's, decided by package
// memory, and what clients send when they connect. Its clock and its faults are arguments, so a test can make a server stall,
// lose a reply or fail over, and an hour takes no time in a testing/synctest bubble:
//
//	synctest.Test(t, func(t *testing.T) {
//		s := resp.NewNetwork(resp.Options{}).Add("10.0.0.1:6379")
//		defer s.Close()
//		rdb := redis.NewClient(&redis.Options{Addr: s.Addr, Dialer: s.Network.Dial})
//		s.Change(func(f *resp.Faults) { f.Silent = true })
//		time.Sleep(time.Hour)
//		s.Change(func(f *resp.Faults) { *f = resp.Faults{} })
//	})
//
// In a bubble, make the network there, too. Servers of one network can be a cluster (NewCluster) or masters and copies that a
// Sentinel watches (NewSentinel). Outside of bubbles, Serve answers on a socket.
//
// This package isn't an API: it may change with every version.
package resp

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"gothrottle/commands/memory"
	"gothrottle/funnel"
)

// Options says what the servers of a network have in common.
type Options struct {
	Now      func() time.Time // by default time.Now
	TLS      bool             // connections are encrypted: Dial does it, and Serve expects it
	Password string           // of the default user; "": none is needed
	Bare     bool             // the servers have no module: only the script runs
	Debug    bool             // connections may send DEBUG, by which programs in other languages set faults and the clock
	Ran      func(Run)        // called after each command of a limiter, one at a time for each server
}

// Run is a command that a server has run.
type Run struct {
	At    time.Time
	Addr  string
	Words []string // without EVALSHA and what belongs to it
	Reply any      // as memory.Server.Do has it, or an error
}

// Network is servers with addresses. Its methods may be called concurrently.
type Network struct {
	o       Options
	tls     *tls.Config // of the servers; nil without TLS
	ca      []byte
	mu      sync.Mutex
	servers map[string]*Server
	ahead   atomic.Int64 // ns: see Advance
}

// NewNetwork returns a network without servers.
func NewNetwork(o Options) *Network {
	if o.Now == nil {
		o.Now = time.Now
	}
	n := &Network{o: o, servers: map[string]*Server{}}
	n.o.Now = func() time.Time { return o.Now().Add(time.Duration(n.ahead.Load())) }
	if o.TLS {
		n.tls, n.ca = certificate(o.Now())
	}
	return n
}

// Advance sets the clock by which limiters decide forward, or back if d is negative.
func (n *Network) Advance(d time.Duration) { n.ahead.Add(int64(d)) }

// Add returns a new server without keys. Dial connects to it by its address.
func (n *Network) Add(addr string) *Server {
	s := &Server{Network: n, Addr: addr, data: memory.NewServer(), scripts: map[string]string{}, conns: map[*conn]bool{}, changed: make(chan struct{})}
	n.mu.Lock()
	n.servers[addr] = s
	n.mu.Unlock()
	return s
}

// Server returns the server with an address, nil if there is none.
func (n *Network) Server(addr string) *Server {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.servers[addr]
}

// Close closes all connections, and the servers accept no others. In a bubble it must be called in the end.
func (n *Network) Close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.servers {
		s.Change(func(f *Faults) { *f = Faults{Refuse: true} })
		closeAll(s.connections(false))
	}
}

// Dial connects to a server, as the Dialer of a client of go-redis. With TLS the connection is encrypted, so the client
// needs no TLSConfig.
func (n *Network) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	s := n.Server(address)
	refused := &net.OpError{Op: "dial", Net: network, Addr: addr(address), Err: syscall.ECONNREFUSED}
	if s == nil {
		return nil, refused
	}
	if err := s.connects(ctx); err != nil {
		refused.Err = err
		return nil, refused
	}
	client, its := newPipe(address)
	go s.ServeConn(its)
	if n.tls == nil {
		return client, nil
	}
	return n.encrypt(ctx, client, address)
}

// Server is one server. Its methods may be called concurrently.
type Server struct {
	*Network
	Addr string

	mu      sync.Mutex // one command at a time; never locked while the server waits for time or a client
	data    *memory.Server
	scripts map[string]string // those that it knows, by their sha1
	faults  Faults
	stalls  int            // so far
	changed chan struct{}  // closed and made again when the faults change
	busy    time.Time      // until then it runs commands: see Faults.Slow
	conns   map[*conn]bool // false: free of faults
	counts  [2]int         // commands until a connection is cut before, and after one
	copyOf  *Server
	copies  []*Server
	late    copied
	cluster *Cluster
	watches *Sentinel
}

// Memory returns what the server decides by, for a look at its keys or its policies.
func (s *Server) Memory() *memory.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data
}

// Serve answers the connections that a listener accepts, until it is closed.
func (s *Server) Serve(l net.Listener) error {
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		if s.connects(context.Background()) != nil {
			_ = c.Close()
			continue
		}
		go s.ServeConn(c)
	}
}

func (s *Server) now() funnel.Micros { return funnel.Micros(s.o.Now().UnixMicro()) }

// Do runs a command line now, without a connection and without faults.
func (s *Server) Do(words ...string) (any, error) { return s.Memory().Do(s.now(), words...) }

// tellCopies makes the server report to its copies what changes. s is locked, or new.
func (s *Server) tellCopies() {
	s.data.Observe(func(command []string) {
		for _, c := range s.copies {
			c.late.add(s.o.Now(), func(data *memory.Server) { _, _ = data.Do(0, command...) })
		}
	})
}
