package main

import (
	"fmt"
	"testing"

	"gothrottle/tests/server"
)

// A load goes to a server with some I/O threads, or to a cluster of some shards.
type load struct {
	row
	threads, shards, depth int
}

// loads returns the loads of docs/scaling.md. redis-benchmark makes {tag} a hash tag for each shard.
func loads() (list []load) {
	many := row{name: "many keys", call: "GO.THROTTLE k{tag}{n} " + rate, keys: 100_000}
	for _, threads := range []int{1, 2, 4} {
		for _, l := range []load{{row: many, depth: 32}, {row: many, depth: 1},
			{row: row{name: "one key", call: "GO.THROTTLE hot " + hotRate}, depth: 32},
			{row: row{name: "one key, denied", call: "GO.THROTTLE hot 0 1 3600"}, depth: 32},
			{row: row{name: "one key, batches of 10", call: "GO.THROTTLE hot " + hotRate + " 10 UPTO"}, depth: 32}} {
			l.threads, l.name = threads, fmt.Sprintf("io-threads %d, %d in a pipeline: %s", threads, l.depth, l.name)
			list = append(list, l)
		}
	}
	for _, shards := range []int{1, 2, 3} {
		l := load{many, 1, shards, 32}
		l.name = fmt.Sprintf("shards %d: %s", shards, l.name)
		list = append(list, l)
	}
	return list
}

// BenchmarkScaling measures the processor time of all servers, that of their main threads, and decisions per second.
func BenchmarkScaling(b *testing.B) {
	each(b, loads(), func(b *testing.B, program string, l load) map[string]float64 {
		o := server.Options{Program: program, Args: []string{"--io-threads", fmt.Sprint(l.threads)}}
		options, nodes := []string{"-P", fmt.Sprint(l.depth)}, []*server.Server(nil)
		if l.shards == 0 {
			nodes = append(nodes, server.New(b, o))
		} else {
			nodes = server.NewCluster(b, l.shards, 0, o)
		}
		if l.shards > 1 { // redis-benchmark refuses a cluster of one
			options = append(options, "--cluster")
		}
		l.times = 1
		s := &stage{b: b, Server: nodes[0], row: l.row, keys: max(l.keys, 1), options: options}
		used := func() (all, main float64) {
			for _, node := range nodes {
				s.Client = node.Client()
				all += s.cpu()
				main += 1e9 * s.info("cpu", "used_cpu_user_main_thread", "used_cpu_sys_main_thread")
				s.Client.Close()
			}
			return all, main
		}
		calls := max(1000, int(4*s.hammer(50_000)*slice.Seconds())) // the first calls make the keys, too
		all, main := used()
		perSecond := s.hammer(calls)
		allAfter, mainAfter := used()
		n := float64(calls)
		return map[string]float64{"cpu-ns/op": (allAfter - all) / n, "main-thread-ns/op": (mainAfter - main) / n, "ops/s": perSecond}
	})
}
