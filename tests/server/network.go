package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Slots is how many hash slots a cluster has.
const Slots = 16384

// Follow makes the server a replica of master and waits until it has received everything.
func (s *Server) Follow(master *Server) error {
	host, port := master.Host, master.Port
	if master.Docker != nil { // the name and port under which another container reaches it
		host, port = master.Name, "6379"
	}
	if _, err := s.Do("REPLICAOF", host, port); err != nil {
		return err
	}
	return s.InStep(master)
}

// InStep waits until a replica has received everything that its master sent.
func (s *Server) InStep(master *Server) error {
	return Await(s.Addr+" has received everything", func() bool { return s.inStep(master) })
}

func (s *Server) inStep(master *Server) bool {
	ours, _ := s.Do("INFO", "replication")
	theirs, _ := master.Do("INFO", "replication")
	return Field(fmt.Sprint(ours), "master_link_status") == "up" &&
		Field(fmt.Sprint(ours), "slave_repl_offset") == Field(fmt.Sprint(theirs), "master_repl_offset")
}

// Cluster is nodes that share the slots.
type Cluster struct {
	Nodes []*Server
	IDs   []string // of the nodes
}

// NewCluster starts a cluster that ends with the test: masters with as many replicas each. See Join.
func NewCluster(tb testing.TB, masters, replicas int, o Options) *Cluster {
	tb.Helper()
	o.Cluster = true
	var nodes []*Server
	for range masters * (1 + replicas) {
		nodes = append(nodes, New(tb, o))
	}
	c, err := Join(masters, nodes...)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// Join makes servers with the option Cluster a cluster, by the commands that redis-cli sends. Master i of n serves the slots
// s with s x n / Slots = i. Each further node is a replica: node n + i is one of node i. Join returns when every node knows
// the whole cluster, finds it in order, and has received everything.
func Join(masters int, nodes ...*Server) (*Cluster, error) {
	c := &Cluster{Nodes: nodes}
	for i, n := range nodes {
		id, err := n.Do("CLUSTER", "MYID")
		if err != nil {
			return nil, err
		}
		c.IDs = append(c.IDs, fmt.Sprint(id))
		orders := [][]any{{"CLUSTER", "SET-CONFIG-EPOCH", i + 1}}
		if i < masters {
			orders = append(orders, []any{"CLUSTER", "ADDSLOTSRANGE", firstSlot(i, masters), firstSlot(i+1, masters) - 1})
		}
		if i > 0 {
			orders = append(orders, []any{"CLUSTER", "MEET", nodes[0].Host, nodes[0].Port, nodes[0].Bus})
		}
		for _, order := range orders {
			if _, err := n.Do(order...); err != nil {
				return nil, fmt.Errorf("%v: %w", order, err)
			}
		}
	}
	err := c.await("knows all nodes and slots", func(n *Server) bool {
		info := n.clusterInfo()
		return Field(info, "cluster_known_nodes") == fmt.Sprint(len(nodes)) && Field(info, "cluster_slots_ok") == fmt.Sprint(Slots)
	})
	for i := masters; i < len(nodes) && err == nil; i++ {
		err = Await("a node becomes a replica", func() bool {
			_, err := nodes[i].Do("CLUSTER", "REPLICATE", c.IDs[i%masters])
			return err == nil
		})
	}
	if err != nil {
		return nil, err
	}
	return c, c.await("sees all replicas and the state ok, and has received everything", func(n *Server) bool {
		list, _ := n.Do("CLUSTER", "NODES")
		i := slices.Index(nodes, n)
		return Field(n.clusterInfo(), "cluster_state") == "ok" && strings.Count(fmt.Sprint(list), "slave ") == len(nodes)-masters &&
			(i < masters || n.inStep(nodes[i%masters]))
	})
}

// firstSlot returns the first slot of master i of n.
func firstSlot(i, n int) int { return (i*Slots + n - 1) / n }

// clusterInfo returns what the server says of its cluster.
func (s *Server) clusterInfo() string {
	info, _ := s.Do("CLUSTER", "INFO")
	return fmt.Sprint(info)
}

// await waits until ok is true for each node that runs.
func (c *Cluster) await(what string, ok func(*Server) bool) error {
	for _, n := range c.Nodes {
		if err := Await("node "+n.Addr+" "+what, func() bool { return n.Exited() || ok(n) }); err != nil {
			return err
		}
	}
	return nil
}
