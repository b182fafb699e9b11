package resp

import (
	"bufio"
	"crypto/tls"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gothrottle/commands/memory"
)

// conn is a connection of a server. One goroutine reads and runs its commands, another one writes the replies when they are due.
type conn struct {
	*Server
	raw    net.Conn
	done   chan struct{} // closed when the connection is
	closed sync.Once
	lost   atomic.Bool // see Server.HalfOpen
	free   atomic.Bool // of faults: see Options.Debug

	protocol int
	known    bool // the client has said the password
	queue    [][]string
	multi    bool
	quits    bool

	mu    sync.Mutex
	out   []flush
	ready chan struct{} // there is something to write
}

// flush is replies that are written together.
type flush struct {
	due  time.Time
	text []byte
	last bool // the connection is then closed
}

// ServeConn answers one connection until it is closed.
func (s *Server) ServeConn(raw net.Conn) {
	c := &conn{Server: s, raw: raw, done: make(chan struct{}), protocol: 2, known: s.o.Password == "", ready: make(chan struct{}, 1)}
	if s.tls != nil {
		c.raw = tls.Server(raw, s.tls)
	}
	s.locked(func() { s.conns[c] = true })
	defer c.close()
	go c.write()
	c.read()
}

func (c *conn) close() {
	c.closed.Do(func() {
		close(c.done)
		_ = c.raw.Close()
		c.locked(func() { delete(c.conns, c) })
	})
}

// read runs commands until the connection ends. Replies are written together while more commands have come.
func (c *conn) read() {
	if !c.heard() {
		return
	}
	in := bufio.NewReader(c.raw)
	var text []byte
	for {
		words, err := readCommand(in)
		if err != nil {
			if err == errProtocol {
				c.send(appendReply(text, 2, memory.Error("ERR "+err.Error())), true)
				<-c.done
			}
			return
		}
		if len(words) == 0 {
			continue
		}
		reply, answered, open := c.handle(words)
		if !open {
			return
		}
		if answered {
			text = appendReply(text, c.protocol, reply)
		}
		if in.Buffered() == 0 || c.quits {
			c.send(text, c.quits)
			text = nil
		}
		if c.quits {
			<-c.done
			return
		}
	}
}

// failing returns the faults that touch the connection, and a channel that is closed when they change.
func (c *conn) failing() (Faults, chan struct{}) {
	f, changed := c.Server.failing()
	return c.touching(f), changed
}

// touching returns what the faults of the server are for the connection.
func (c *conn) touching(f Faults) Faults {
	if c.free.Load() {
		f = Faults{}
	}
	f.NoModule = f.NoModule || c.o.Bare
	return f
}

// heard waits until the server reads. It reports whether the connection is still open.
func (c *conn) heard() bool {
	for {
		f, changed := c.failing()
		if !f.Silent {
			return true
		}
		select {
		case <-changed:
		case <-c.done:
			return false
		}
	}
}

// handle runs a command, with the faults of the server. It reports whether there is a reply, and whether the connection is
// still open.
func (c *conn) handle(words []string) (reply any, answered, open bool) {
	if c.o.Debug && c.known && strings.EqualFold(words[0], "DEBUG") {
		return c.debug(words[1:]), true, true
	}
	if c.free.Load() {
		return c.run(words), true, true
	}
	if !c.heard() || !c.wait(c.turn()) {
		return nil, false, false
	}
	if c.lost.Load() {
		return nil, false, true
	}
	limits := limiterCommand(words)
	if limits && c.cut(0) {
		return nil, false, false
	}
	reply = c.run(words)
	f, _ := c.failing()
	return reply, !f.Mute, !limits || !c.cut(1)
}

// wait reports whether the connection is still open after this time.
func (c *conn) wait(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.done:
		return false
	}
}

// send lets replies be written when they are due.
func (c *conn) send(text []byte, last bool) {
	f, _ := c.failing()
	c.mu.Lock()
	c.out = append(c.out, flush{time.Now().Add(f.Far), text, last})
	c.mu.Unlock()
	select {
	case c.ready <- struct{}{}:
	default:
	}
}

// write writes replies when they are due.
func (c *conn) write() {
	for {
		c.mu.Lock()
		out := c.out
		c.out = nil
		c.mu.Unlock()
		for _, f := range out {
			if !c.wait(time.Until(f.due)) {
				return
			}
			if c.lost.Load() {
				continue
			}
			if _, err := c.raw.Write(f.text); err != nil || f.last {
				c.close()
				return
			}
		}
		select {
		case <-c.ready:
		case <-c.done:
			return
		}
	}
}

// run returns the reply of a command.
func (c *conn) run(words []string) any {
	name := strings.ToUpper(words[0])
	greets, known := greetings[name]
	if f, _ := c.failing(); f.Reply != nil && (!known || name == "COMMAND") {
		if reply, replies := f.Reply(words); replies {
			return reply
		}
	}
	switch {
	case known && (c.known || slices.Contains(unprotected, name)):
		return greets(c, words[1:])
	case !c.known:
		return memory.Error("NOAUTH Authentication required.")
	case c.multi && name != "EXEC" && name != "DISCARD":
		c.queue = append(c.queue, words)
		return memory.Status("QUEUED")
	case name == "MULTI" || name == "EXEC" || name == "DISCARD":
		return c.transaction(name)
	}
	c.Server.mu.Lock()
	defer c.Server.mu.Unlock()
	return c.one(words)
}

// transaction is MULTI, EXEC and DISCARD. Nothing comes between the commands of an EXEC.
func (c *conn) transaction(name string) any {
	if c.multi == (name == "MULTI") {
		return memory.Error("ERR " + name + " is not possible here: a transaction is MULTI, commands and EXEC or DISCARD")
	}
	queue := c.queue
	if c.multi, c.queue = name == "MULTI", nil; name != "EXEC" {
		return memory.Status("OK")
	}
	c.Server.mu.Lock()
	defer c.Server.mu.Unlock()
	replies := []any{}
	for _, words := range queue {
		replies = append(replies, c.one(words))
	}
	return replies
}
