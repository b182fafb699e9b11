package resp

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"gothrottle/commands/memory"
)

// Slots is the number of slots of a cluster.
const Slots = 16384

// Slot returns the slot of a key: CRC16 (XMODEM) of its hash tag, as the cluster specification has it.
func Slot(key string) int {
	if from := strings.IndexByte(key, '{'); from >= 0 {
		if to := strings.IndexByte(key[from+1:], '}'); to > 0 {
			key = key[from+1:][:to]
		}
	}
	crc := uint16(0)
	for _, b := range []byte(key) {
		crc ^= uint16(b) << 8
		for range 8 {
			crc = crc<<1 ^ crc>>15*0x1021
		}
	}
	return int(crc) % Slots
}

// Cluster is masters that share the slots, and their copies. Its methods may be called concurrently.
type Cluster struct {
	mu      sync.Mutex
	masters []*Server
	owner   [Slots]*Server
}

// NewCluster makes a cluster of new servers, whose first slots are the first server's.
func (n *Network) NewCluster(addrs ...string) *Cluster {
	c := &Cluster{}
	for _, addr := range addrs {
		s := n.Add(addr)
		s.locked(func() { s.cluster = c })
		c.masters = append(c.masters, s)
	}
	for slot := range c.owner {
		c.owner[slot] = c.masters[slot*len(addrs)/Slots]
	}
	return c
}

// Masters returns the masters, in the order of their first slots in the beginning.
func (c *Cluster) Masters() []*Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.masters)
}

// Move moves a slot with its keys, at one instant.
func (c *Cluster) Move(slot int, to *Server) {
	c.mu.Lock()
	from := c.owner[slot]
	c.mu.Unlock()
	from.mu.Lock()
	defer from.mu.Unlock()
	if from != to {
		to.mu.Lock()
		defer to.mu.Unlock()
		for _, key := range from.data.Keys() {
			if Slot(key) == slot {
				to.put(key, from.data.Get(key))
				from.put(key, nil)
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.owner[slot] = to
}

// Promote makes a copy the master of its master's slots: see Server.Promote.
func (c *Cluster) Promote(copy *Server) {
	old := copy.Promote()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.masters[slices.Index(c.masters, old)] = copy
	for slot := range c.owner {
		if c.owner[slot] == old {
			c.owner[slot] = copy
		}
	}
}

// elsewhere returns what a server replies to a command whose keys aren't its own, nil if they are. s is locked.
func (c *Cluster) elsewhere(s *Server, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	slot := Slot(keys[0])
	for _, key := range keys {
		if Slot(key) != slot {
			return memory.Error("CROSSSLOT Keys in request don't hash to the same slot")
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if owner := c.owner[slot]; owner != s {
		return memory.Error(fmt.Sprintf("MOVED %d %s", slot, owner.Addr))
	}
	return nil
}

// clusterCommand is CLUSTER SLOTS, SHARDS, NODES, INFO, MYID and KEYSLOT.
func (c *conn) clusterCommand(args []string) any {
	if c.cluster == nil {
		return memory.Error("ERR This instance has cluster support disabled")
	}
	switch word(args, 0) {
	case "INFO":
		return "cluster_enabled:1\r\ncluster_state:ok\r\ncluster_slots_assigned:16384\r\n"
	case "MYID":
		return id(c.Server)
	case "KEYSLOT":
		return int64(Slot(strings.Join(args[1:], " ")))
	case "SLOTS":
		return c.cluster.slots(func(from, to int64, nodes []*Server) any {
			row := []any{from, to}
			for _, s := range nodes {
				host, port := s.hostPort()
				row = append(row, []any{host, port, id(s), []any{}})
			}
			return row
		})
	case "NODES":
		lines := map[*Server]string{}
		c.cluster.slots(func(from, to int64, nodes []*Server) any {
			for _, s := range nodes {
				master := id(nodes[0])
				if s == nodes[0] {
					master = "-"
				}
				lines[s] = cmp.Or(lines[s], fmt.Sprintf("%s %s@0 %s %s 0 0 1 connected", id(s), s.Addr, s.roleName(), master))
			}
			lines[nodes[0]] += fmt.Sprintf(" %d-%d", from, to)
			return nil
		})
		return strings.Join(slices.Sorted(maps.Values(lines)), "\n") + "\n"
	case "SHARDS":
		return c.cluster.slots(func(from, to int64, nodes []*Server) any {
			all := []any{}
			for _, s := range nodes {
				host, port := s.hostPort()
				all = append(all, memory.Map{"id", id(s), "port", port, "ip", host, "endpoint", host, "role", s.roleName(),
					"replication-offset", int64(0), "health", "online"})
			}
			return memory.Map{"slots", []any{from, to}, "nodes", all}
		})
	}
	return memory.Error("ERR unknown subcommand. Try CLUSTER HELP.")
}

// slots returns a row for each run of slots with one master.
func (c *Cluster) slots(row func(from, to int64, nodes []*Server) any) []any {
	c.mu.Lock()
	owner := c.owner
	c.mu.Unlock()
	rows, from := []any{}, 0
	for slot := range owner {
		if slot+1 == Slots || owner[slot+1] != owner[slot] {
			master := owner[slot]
			var copies []*Server
			master.locked(func() { copies = slices.Clone(master.copies) })
			rows = append(rows, row(int64(from), int64(slot), append([]*Server{master}, copies...)))
			from = slot + 1
		}
	}
	return rows
}

func (s *Server) hostPort() (host string, port int64) {
	host, text, _ := net.SplitHostPort(s.Addr)
	port, _ = strconv.ParseInt(text, 10, 64)
	return host, port
}

// id returns what names a server for 40 characters.
func id(s *Server) string { return fmt.Sprintf("%040x", s.Addr)[:40] }

// copied is what a copy has still to run, with the times when its master did.
type copied struct {
	mu  sync.Mutex
	all []effect
	lag time.Duration
}

type effect struct {
	at  time.Time
	run func(data *memory.Server)
}

func (c *copied) add(at time.Time, run func(data *memory.Server)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, effect{at, run})
}

// put sets a key here and at the copies. s is locked.
func (s *Server) put(key string, v *memory.Value) {
	s.data.Put(key, v.Clone())
	for _, c := range s.copies {
		c.late.add(s.o.Now(), func(data *memory.Server) { data.Put(key, v.Clone()) })
	}
}

// until removes and returns the effects that have come at this time.
func (c *copied) until(now time.Time) (come []effect) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for n < len(c.all) && !c.all[n].at.After(now.Add(-c.lag)) {
		n++
	}
	come, c.all = c.all[:n:n], c.all[n:]
	return come
}

// AddCopy adds a copy of a master, which is behind by this much.
func (s *Server) AddCopy(addr string, lag time.Duration) *Server {
	c := s.Network.Add(addr)
	s.mu.Lock()
	defer s.mu.Unlock()
	c.locked(func() {
		c.cluster, c.copyOf, c.late.lag = s.cluster, s, lag
		c.data = clone(s.data)
	})
	s.copies = append(s.copies, c)
	s.tellCopies()
	return c
}

// clone returns a copy of all keys.
func clone(data *memory.Server) *memory.Server {
	to := memory.NewServer()
	for _, key := range data.Keys() {
		to.Put(key, data.Get(key))
	}
	return to
}

// catchUp lets a copy run what has come from its master. s is locked.
func (s *Server) catchUp(now time.Time) {
	for _, e := range s.late.until(now) {
		e.run(s.data)
	}
}

// Promote makes a copy a master: what hasn't come yet is lost. Its old master, which it returns, becomes a copy of it with the
// same lag, and loses its connections.
func (s *Server) Promote() (old *Server) {
	s.locked(func() {
		old = s.copyOf
		s.catchUp(s.o.Now())
		s.late.all, s.copyOf = nil, nil
		old.late.lag = s.late.lag // nobody uses it while old is a master
	})
	others := []*Server{old}
	old.locked(func() {
		for _, c := range old.copies {
			if c != s {
				others = append(others, c)
			}
		}
		old.copies = nil
	})
	var data *memory.Server
	s.locked(func() {
		s.copies, data = others, s.data
		s.tellCopies()
	})
	for _, c := range others {
		c.locked(func() { c.copyOf, c.late.all, c.data = s, nil, clone(data) })
	}
	old.Cut()
	return old
}

func (s *Server) roleName() string {
	if s.watches != nil {
		return "sentinel"
	}
	if s.copyOf != nil {
		return "slave"
	}
	return "master"
}

func (c *conn) role([]string) any { return []any{c.roleName(), int64(0), []any{}} }
