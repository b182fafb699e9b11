package server

import (
	"fmt"
	"strings"
	"testing"
)

// Slots is how many hash slots a cluster has.
const Slots = 16384

// Follow makes the server a replica of master and waits until it has received everything.
func (s *Server) Follow(master *Server) error {
	if _, err := s.Do("REPLICAOF", master.Host, master.Port); err != nil {
		return err
	}
	return s.InStep(master)
}

// InStep waits until a replica has received everything that its master sent.
func (s *Server) InStep(master *Server) error {
	return Await(s.Addr+" has received everything", func() bool {
		ours, theirs := s.text("INFO", "replication"), master.text("INFO", "replication")
		return Field(ours, "master_link_status") == "up" && Field(ours, "slave_repl_offset") == Field(theirs, "master_repl_offset")
	})
}

// text returns the reply to a command, or its error, as text.
func (s *Server) text(words ...any) string {
	reply, err := s.Do(words...)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(reply)
}

// NewCluster starts a cluster that ends with the test: masters with as many replicas each. See Join.
func NewCluster(tb testing.TB, masters, replicas int, o Options) (nodes []*Server) {
	tb.Helper()
	o.Cluster = true
	for range masters * (1 + replicas) {
		nodes = append(nodes, New(tb, o))
	}
	if err := Join(masters, nodes...); err != nil {
		tb.Fatal(err)
	}
	return nodes
}

// Join makes servers with the option Cluster a cluster, by the commands that redis-cli sends. Master i of n serves the slots
// s with s x n / Slots = i. Each further node is a replica: node n + i is one of node i. Join returns when every node knows
// the whole cluster, finds it in order, and has received everything.
func Join(masters int, nodes ...*Server) error {
	var ids []string
	for i, n := range nodes {
		ids = append(ids, n.text("CLUSTER", "MYID"))
		orders := [][]any{{"CLUSTER", "SET-CONFIG-EPOCH", i + 1}}
		if i < masters {
			first := func(i int) int { return (i*Slots + masters - 1) / masters }
			orders = append(orders, []any{"CLUSTER", "ADDSLOTSRANGE", first(i), first(i+1) - 1})
		}
		if i > 0 {
			orders = append(orders, []any{"CLUSTER", "MEET", nodes[0].Host, nodes[0].Port, nodes[0].Bus})
		}
		for _, order := range orders {
			if _, err := n.Do(order...); err != nil {
				return fmt.Errorf("%v: %w", order, err)
			}
		}
	}
	for i, n := range nodes[masters:] {
		if err := Await(n.Addr+" becomes a replica", func() bool { return n.text("CLUSTER", "REPLICATE", ids[i%masters]) == "OK" }); err != nil {
			return err
		}
	}
	for i, n := range nodes {
		err := Await(n.Addr+" knows all slots and replicas, and finds the cluster in order", func() bool {
			info := n.text("CLUSTER", "INFO")
			return Field(info, "cluster_state") == "ok" && Field(info, "cluster_slots_ok") == fmt.Sprint(Slots) &&
				strings.Count(n.text("CLUSTER", "NODES"), "slave ") == len(nodes)-masters
		})
		if err == nil && i >= masters {
			err = n.InStep(nodes[i%masters])
		}
		if err != nil {
			return err
		}
	}
	return nil
}
