package main

import (
	"fmt"
	"net"
	"strings"
	"time"
)

// slots is the number of hash slots of a cluster.
const slots = 16384

// slotOf returns the hash slot of a key without a hash tag: CRC-16 (XMODEM) of the key.
func slotOf(key []byte) int {
	crc := uint16(0)
	for _, c := range key {
		crc ^= uint16(c) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			crc <<= 1
			if carry {
				crc ^= 0x1021
			}
		}
	}
	return int(crc) % slots
}

// firstSlot returns the first slot of master i of n. Master i serves the slots s with
// s x n / slots = i.
func firstSlot(i, n int) int { return (i*slots + n - 1) / n }

// A fleet is the masters of a cluster, or one server without cluster mode.
type fleet struct {
	servers []*server
	clients [][]*conn // the connections of each client, one to each server
}

// fleet starts a cluster of masters that share the slots evenly, or one server without
// cluster mode if shards is 0.
func (b *bench) fleet(file string, shards int, cpus string, args ...string) (*fleet, error) {
	f := &fleet{}
	err := b.start(f, file, shards, cpus, args)
	for range b.conns {
		if err == nil {
			err = f.addClient()
		}
	}
	if err != nil {
		f.leave()
		return nil, err
	}
	return f, nil
}

func (b *bench) start(f *fleet, file string, shards int, cpus string, args []string) error {
	args = append(args, "--loadmodule", b.module)
	if shards == 0 {
		s, err := launch(b.ctx, file, cpus, args...)
		if err == nil {
			f.servers = append(f.servers, s)
		}
		return err
	}
	var buses []string
	for range shards {
		bus, err := freePort()
		if err != nil {
			return err
		}
		s, err := launch(b.ctx, file, cpus, append([]string{"--cluster-enabled", "yes", "--cluster-port", bus}, args...)...)
		if err != nil {
			return err
		}
		f.servers, buses = append(f.servers, s), append(buses, bus)
	}
	return f.join(buses)
}

// freePort returns a port of 127.0.0.1 that nothing listened on a moment ago.
func freePort() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	return port, err
}

// join makes the servers one cluster and returns when all of them serve their slots.
func (f *fleet) join(buses []string) error {
	n := len(f.servers)
	for i, s := range f.servers {
		orders := [][]string{
			{"CLUSTER", "SET-CONFIG-EPOCH", fmt.Sprint(i + 1)},
			{"CLUSTER", "ADDSLOTSRANGE", fmt.Sprint(firstSlot(i, n)), fmt.Sprint(firstSlot(i+1, n) - 1)},
		}
		if i > 0 {
			host, port, _ := net.SplitHostPort(f.servers[0].addr)
			orders = append(orders, []string{"CLUSTER", "MEET", host, port, buses[0]})
		}
		for _, order := range orders {
			if _, err := s.control.ask(order...); err != nil {
				return fmt.Errorf("%s: %w", strings.Join(order, " "), err)
			}
		}
	}
	deadline := time.Now().Add(20 * time.Second)
	for _, s := range f.servers {
		for !s.serves(n) {
			if time.Now().After(deadline) {
				return fmt.Errorf("the cluster of %d masters does not come up", n)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	return nil
}

// serves says whether a server knows n nodes and finds the cluster in order.
func (s *server) serves(n int) bool {
	text, err := s.control.ask("CLUSTER", "INFO")
	return err == nil && strings.Contains(text, "cluster_state:ok\r") &&
		strings.Contains(text, fmt.Sprintf("cluster_known_nodes:%d\r", n))
}

// addClient connects one more client to each server.
func (f *fleet) addClient() error {
	var client []*conn
	f.clients = append(f.clients, nil)
	for _, s := range f.servers {
		conns, err := dial(s.addr, 1)
		if err != nil {
			return err
		}
		client = append(client, conns[0])
		f.clients[len(f.clients)-1] = client
	}
	return nil
}

func (f *fleet) leave() {
	for _, client := range f.clients {
		hangUp(client)
	}
	for _, s := range f.servers {
		s.stop()
	}
}

// owners returns the server of each key.
func (f *fleet) owners(keys int64) []uint8 {
	owners := make([]uint8, keys)
	for key := range owners {
		name := appendDigits([]byte(keyPrefix), int64(key), blanks["{key}"])
		owners[key] = uint8(slotOf(name) * len(f.servers) / slots)
	}
	return owners
}

// run sends ops for random keys for a time d, or one op for each key if d is 0. A client
// draws depth keys for each server, sends each op to the server of its key, and waits for
// all replies.
func (f *fleet) run(t *traffic, owners []uint8, d time.Duration) (tally, error) {
	var first []*conn
	for _, client := range f.clients {
		first = append(first, client[0])
	}
	batch := int64(t.depth * len(f.servers))
	return together(first, func(i int, c *conn, start time.Time) (sum tally, err error) {
		for at := int64(i) * batch; err == nil; at += batch * int64(len(f.clients)) {
			switch {
			case d > 0 && time.Since(start) >= d, d == 0 && at >= t.keys:
				return sum, nil
			case d > 0:
				err = t.scatter(f.clients[i], owners, batch, func(int64) int64 { return c.random.Int64N(t.keys) }, &sum)
			default:
				err = t.scatter(f.clients[i], owners, min(batch, t.keys-at), func(j int64) int64 { return at + j }, &sum)
			}
		}
		return sum, err
	})
}

// scatter sends n ops to the servers of their keys and reads the replies.
func (t *traffic) scatter(client []*conn, owners []uint8, n int64, key func(j int64) int64, sum *tally) error {
	sent := make([]int, len(client))
	for _, c := range client {
		c.out = c.out[:0]
	}
	for j := range n {
		k := key(j)
		client[owners[k]].append(t, k, 0)
		sent[owners[k]]++
	}
	for i, c := range client {
		if sent[i] > 0 {
			if _, err := c.Write(c.out); err != nil {
				return err
			}
		}
	}
	for i, c := range client {
		if sent[i] > 0 {
			if err := c.receive(t, sent[i], sum); err != nil {
				return err
			}
		}
	}
	return nil
}
