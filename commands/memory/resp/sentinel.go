package resp

import (
	"slices"
	"strconv"
	"sync"

	"gothrottle/commands/memory"
)

// Sentinel is servers that say which server is the master of a set. Its methods may be called concurrently.
type Sentinel struct {
	name  string
	addrs []*Server

	mu        sync.Mutex
	master    *Server
	listeners map[*conn]string // the word that the client subscribed by
}

// NewSentinel adds Sentinels that watch a master with its copies under a name.
func (n *Network) NewSentinel(name string, master *Server, addrs ...string) *Sentinel {
	w := &Sentinel{name: name, master: master, listeners: map[*conn]string{}}
	for _, addr := range addrs {
		s := n.Add(addr)
		s.locked(func() { s.watches = w })
		w.addrs = append(w.addrs, s)
	}
	return w
}

// Promote makes a copy the master, and informs the clients: see Server.Promote.
func (w *Sentinel) Promote(copy *Server) {
	old := copy.Promote()
	host, port := old.hostPort()
	newHost, newPort := copy.hostPort()
	text := w.name + " " + host + " " + strconv.FormatInt(port, 10) + " " + newHost + " " + strconv.FormatInt(newPort, 10)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.master = copy
	for c, word := range w.listeners {
		message := push{"message", switched, text}
		if word == "psubscribe" {
			message = push{"pmessage", "*", switched, text}
		}
		c.send(appendReply(nil, c.protocol, message), false)
	}
}

const switched = "+switch-master"

// Master returns the master.
func (w *Sentinel) Master() *Server {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.master
}

// copies returns the copies of the master.
func (w *Sentinel) copies() (all []*Server) {
	master := w.Master()
	master.locked(func() { all = slices.Clone(master.copies) })
	return all
}

// sentinel is SENTINEL with what clients ask for.
func (c *conn) sentinel(args []string) any {
	w := c.watches
	if w == nil {
		return memory.Error("ERR unknown command 'SENTINEL', with args beginning with: ")
	}
	if name := word(args, 0); name != "MASTERS" && (len(args) < 2 || args[1] != w.name) {
		if name == "GET-MASTER-ADDR-BY-NAME" {
			return nil
		}
		return memory.Error("ERR No such master with that name")
	}
	master := w.Master()
	host, port := master.hostPort()
	switch word(args, 0) {
	case "GET-MASTER-ADDR-BY-NAME":
		return []any{host, strconv.FormatInt(port, 10)}
	case "MASTERS":
		return []any{w.row(master, "master")}
	case "MASTER":
		return w.row(master, "master")
	case "REPLICAS", "SLAVES":
		rows := []any{}
		for _, s := range w.copies() {
			rows = append(rows, w.row(s, "slave"))
		}
		return rows
	case "SENTINELS":
		rows := []any{}
		for _, s := range w.addrs {
			if s != c.Server {
				rows = append(rows, w.row(s, "sentinel"))
			}
		}
		return rows
	}
	return memory.Error("ERR unknown subcommand. Try SENTINEL HELP.")
}

func (w *Sentinel) row(s *Server, flags string) memory.Map {
	host, port := s.hostPort()
	return memory.Map{"name", w.name, "ip", host, "port", strconv.FormatInt(port, 10), "runid", id(s), "flags", flags,
		"num-other-sentinels", strconv.Itoa(len(w.addrs) - 1), "master-link-status", "ok"}
}

// subscribe lets a client hear of new masters.
func (c *conn) subscribe(kind string, channels []string) any {
	if c.watches != nil {
		c.watches.mu.Lock()
		c.watches.listeners[c] = kind
		c.watches.mu.Unlock()
	}
	for i, channel := range channels[:max(len(channels)-1, 0)] {
		c.send(appendReply(nil, c.protocol, push{kind, channel, int64(i + 1)}), false)
	}
	if len(channels) == 0 {
		return wrongNumber(kind)
	}
	return push{kind, channels[len(channels)-1], int64(len(channels))}
}
