package resp

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// pipeRoom is how many bytes one direction of a connection in memory holds before a write waits, as a socket's buffers do.
const pipeRoom = 256 << 10

// end is one end of a connection in memory. Unlike one of net.Pipe it has a buffer, and a read after the peer has closed returns
// io.EOF, which clients know from sockets.
type end struct {
	changed     *sync.Cond // of both ends: its lock guards all that follows, and nobody holds it while time stands still
	peer        *end
	addr        addr
	closed      bool
	buffer      []byte // what the peer has written
	read, write deadline
}

// deadline is when reads or writes fail: never, if it is zero.
type deadline struct {
	at    time.Time
	timer *time.Timer // wakes those that wait
}

type addr string

func (addr) Network() string  { return "tcp" }
func (a addr) String() string { return string(a) }

// newPipe returns the two ends of a connection to the server of this address.
func newPipe(server string) (client, its net.Conn) {
	changed := sync.NewCond(new(sync.Mutex))
	a, b := &end{changed: changed, addr: "127.0.0.1:1"}, &end{changed: changed, addr: addr(server)}
	a.peer, b.peer = b, a
	return a, b
}

func (e *end) Read(b []byte) (n int, err error) {
	err = e.until(&e.read, func() (bool, error) {
		if n = copy(b, e.buffer); n > 0 || len(b) == 0 {
			e.buffer = e.buffer[n:]
			return true, nil
		}
		return e.peer.closed, io.EOF
	})
	return n, err
}

func (e *end) Write(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		err = e.until(&e.write, func() (bool, error) {
			if e.peer.closed { // as with a socket, the first to notice is a read
				n = len(b)
				return true, nil
			}
			most := min(pipeRoom-len(e.peer.buffer), len(b)-n)
			e.peer.buffer, n = append(e.peer.buffer, b[n:n+most]...), n+most
			return most > 0, nil
		})
	}
	return n, err
}

// until runs try whenever something changes, until it is done or the deadline has passed.
func (e *end) until(d *deadline, try func() (done bool, err error)) error {
	e.changed.L.Lock()
	defer e.changed.L.Unlock()
	for {
		switch {
		case e.closed:
			return net.ErrClosed
		case !d.at.IsZero() && time.Until(d.at) <= 0:
			return os.ErrDeadlineExceeded
		}
		if done, err := try(); done {
			e.changed.Broadcast()
			return err
		}
		e.changed.Wait()
	}
}

// change lets reads and writes that wait look at what f changes.
func (e *end) change(f func()) error {
	e.changed.L.Lock()
	defer e.changed.L.Unlock()
	f()
	e.changed.Broadcast()
	return nil
}

func (e *end) Close() error { return e.change(func() { e.closed = true }) }

func (e *end) LocalAddr() net.Addr  { return e.addr }
func (e *end) RemoteAddr() net.Addr { return e.peer.addr }

// set sets a deadline. e is locked.
func (e *end) set(d *deadline, t time.Time) {
	if d.at = t; d.timer != nil {
		d.timer.Stop()
	}
	if !t.IsZero() {
		d.timer = time.AfterFunc(time.Until(t), func() { _ = e.change(func() {}) })
	}
}

func (e *end) SetDeadline(t time.Time) error {
	return e.change(func() { e.set(&e.read, t); e.set(&e.write, t) })
}

func (e *end) SetReadDeadline(t time.Time) error { return e.change(func() { e.set(&e.read, t) }) }

func (e *end) SetWriteDeadline(t time.Time) error { return e.change(func() { e.set(&e.write, t) }) }
