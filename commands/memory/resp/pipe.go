package resp

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// pipeRoom is how many bytes one direction of a pipe holds before a write waits, as a socket's buffers do.
const pipeRoom = 256 << 10

// pipe is one direction of a connection in memory. Unlike net.Pipe it has a buffer, and a read after the peer has closed
// returns io.EOF, which clients know from sockets.
type pipe struct {
	mu      sync.Mutex
	buffer  []byte
	closed  bool
	changed chan struct{} // closed and made again at each change: nobody waits for a lock while time stands still
}

func (p *pipe) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	close(p.changed)
	p.changed = make(chan struct{})
}

// end is one end of a connection in memory.
type end struct {
	in, out     *pipe
	local, peer addr
	mu          sync.Mutex
	closed      bool
	reads       time.Time // deadlines
	writes      time.Time
}

type addr string

func (addr) Network() string  { return "tcp" }
func (a addr) String() string { return string(a) }

// newPipe returns the two ends of a connection to the server of this address.
func newPipe(server string) (client, its net.Conn) {
	a, b := &pipe{changed: make(chan struct{})}, &pipe{changed: make(chan struct{})}
	return &end{in: a, out: b, local: "127.0.0.1:1", peer: addr(server)}, &end{in: b, out: a, local: addr(server), peer: "127.0.0.1:1"}
}

func (e *end) Read(b []byte) (n int, err error) {
	err = e.until(e.in, &e.reads, func() (bool, error) {
		if n = copy(b, e.in.buffer); n > 0 || len(b) == 0 {
			e.in.buffer = e.in.buffer[n:]
			return true, nil
		}
		return e.in.closed, io.EOF
	})
	return n, err
}

func (e *end) Write(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		err = e.until(e.out, &e.writes, func() (bool, error) {
			if e.out.closed { // by the peer: as with a socket, the first to notice is a read
				n = len(b)
				return true, nil
			}
			most := min(pipeRoom-len(e.out.buffer), len(b)-n)
			e.out.buffer, n = append(e.out.buffer, b[n:n+most]...), n+most
			return most > 0, nil
		})
	}
	return n, err
}

// until runs try whenever the pipe changes, until it is done or the deadline has passed. try holds the pipe's lock.
func (e *end) until(p *pipe, deadline *time.Time, try func() (bool, error)) error {
	for {
		e.mu.Lock()
		at, closed := *deadline, e.closed
		e.mu.Unlock()
		if closed {
			return net.ErrClosed
		}
		left := time.Until(at)
		if !at.IsZero() && left <= 0 {
			return os.ErrDeadlineExceeded
		}
		var done bool
		var err error
		p.mu.Lock()
		changed := p.changed
		if done, err = try(); done {
			close(p.changed)
			p.changed = make(chan struct{})
		}
		p.mu.Unlock()
		switch {
		case done:
			return err
		case at.IsZero():
			<-changed
		default:
			timer := time.NewTimer(left)
			select {
			case <-changed:
			case <-timer.C:
			}
			timer.Stop()
		}
	}
}

func (e *end) Close() error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	for _, p := range []*pipe{e.in, e.out} {
		p.change(func() { p.closed = true })
	}
	return nil
}

func (e *end) LocalAddr() net.Addr  { return e.local }
func (e *end) RemoteAddr() net.Addr { return e.peer }

// deadline sets deadlines, and lets reads and writes that wait look at them.
func (e *end) deadline(set func()) error {
	e.mu.Lock()
	set()
	e.mu.Unlock()
	e.in.change(func() {})
	e.out.change(func() {})
	return nil
}

func (e *end) SetDeadline(t time.Time) error {
	return e.deadline(func() { e.reads, e.writes = t, t })
}

func (e *end) SetReadDeadline(t time.Time) error { return e.deadline(func() { e.reads = t }) }

func (e *end) SetWriteDeadline(t time.Time) error { return e.deadline(func() { e.writes = t }) }
