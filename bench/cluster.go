package main

import (
	"time"

	servers "gothrottle/tests/server"
)

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
	return int(crc) % servers.Slots
}

// A fleet is the masters of a cluster, or one server without cluster mode.
type fleet struct {
	servers []*server
	cluster bool
	clients [][]*conn // the connections of each client, one to each server
}

// fleet starts a cluster of masters that share the slots evenly, or one server without
// cluster mode if shards is 0.
func (b *bench) fleet(file string, shards int, cpus string, args ...string) (*fleet, error) {
	f := &fleet{cluster: shards > 0}
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
	var nodes []*servers.Server
	for range max(shards, 1) {
		s, err := launch(b.ctx, file, cpus, servers.Options{Module: b.module, Cluster: f.cluster, Args: args})
		if err != nil {
			return err
		}
		f.servers, nodes = append(f.servers, s), append(nodes, s.Server)
	}
	if !f.cluster {
		return nil
	}
	_, err := servers.Join(shards, nodes...)
	return err
}

// addClient connects one more client to each server.
func (f *fleet) addClient() error {
	var client []*conn
	f.clients = append(f.clients, nil)
	for _, s := range f.servers {
		conns, err := dial(s.Addr, 1)
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

// targets are the keys of a load. A pool is the keys that are drawn at the same time.
type targets struct {
	owners []uint8   // the server of each key
	pools  [][]int64 // one after another: each gets its part of the time
}

// targets makes one pool of all keys or, with inTurn, a pool of the keys of each server.
func (f *fleet) targets(keys int64, inTurn bool) *targets {
	to := &targets{pools: make([][]int64, 1)}
	if inTurn {
		to.pools = make([][]int64, len(f.servers))
	}
	for key := range keys {
		name := appendDigits([]byte(keyPrefix), key, blanks["{key}"])
		owner := slotOf(name) * len(f.servers) / servers.Slots
		to.owners = append(to.owners, uint8(owner))
		pool := owner % len(to.pools)
		to.pools[pool] = append(to.pools[pool], key)
	}
	return to
}

// ownersOf returns how many servers own the keys of a pool.
func (to *targets) ownersOf(pool []int64) int {
	seen := map[uint8]bool{}
	for _, key := range pool {
		seen[to.owners[key]] = true
	}
	return len(seen)
}

// run sends ops for random keys for a time d. A client draws depth keys for each server that
// owns any of the pool, sends each op to the server of its key, and waits for all replies.
func (f *fleet) run(t *traffic, to *targets, d time.Duration) (sum tally, err error) {
	for _, pool := range to.pools {
		batch := t.depth * to.ownersOf(pool)
		one, err := f.together(func(client []*conn, start time.Time) (one tally, err error) {
			random := client[0].random
			for err == nil && time.Since(start) < d/time.Duration(len(to.pools)) {
				err = t.scatter(client, to.owners, batch, func(int) int64 { return pool[random.IntN(len(pool))] }, &one)
			}
			return one, err
		})
		sum.add(one)
		sum.took += one.took
		if err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// fill sends one op for each key.
func (f *fleet) fill(t *traffic, to *targets) error {
	keys := int64(len(to.owners))
	for at := int64(0); at < keys; at += 128 {
		var sum tally
		client := f.clients[at/128%int64(len(f.clients))]
		if err := t.scatter(client, to.owners, int(min(128, keys-at)), func(j int) int64 { return at + int64(j) }, &sum); err != nil {
			return err
		}
	}
	return nil
}

// together runs work for all clients at once and adds up the tallies.
func (f *fleet) together(work func(client []*conn, start time.Time) (tally, error)) (tally, error) {
	var first []*conn
	for _, client := range f.clients {
		first = append(first, client[0])
	}
	return together(first, func(i int, _ *conn, start time.Time) (tally, error) { return work(f.clients[i], start) })
}

// scatter sends n ops to the servers of their keys and reads the replies.
func (t *traffic) scatter(client []*conn, owners []uint8, n int, key func(j int) int64, sum *tally) error {
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
