package failover

import (
	"slices"
	"time"
)

// fault is a way in which a master stops being the master.
type fault struct {
	name string
	do   func(*episode)
	// lossless says that the old master hands over everything.
	lossless bool
	// bounded says that the old master stops deciding within this time after the fault began, or after SIGCONT. Otherwise
	// it decides until the fault ends.
	bounded bool
	ends    time.Duration
	// cutOff says that only the island can reach the old master.
	cutOff bool
	// fenced says that masters need a replica to write.
	fenced bool
}

// A master that is cut off pings each node within half the node timeout, waits a node timeout for the answer, and looks
// every 100 ms.
const clusterStops = 1500*time.Millisecond + 200*time.Millisecond

// fencedLag is min-replicas-max-lag in seconds. Times are whole seconds for the server, and it looks every second.
const (
	fencedLag   = 2
	fencedStops = (fencedLag + 2) * time.Second
)

var clusterFaults = []*fault{
	{name: "kill -9", do: (*episode).kill, bounded: true},
	{name: "CLUSTER FAILOVER", do: (*episode).clusterFailover, lossless: true, bounded: true, ends: 5 * time.Second},
	{name: "CLUSTER FAILOVER FORCE", do: (*episode).clusterForce, bounded: true, ends: 2 * time.Second},
	{name: "CLUSTER FAILOVER TAKEOVER", do: (*episode).clusterTakeover, bounded: true},
	{name: "SIGSTOP, SIGCONT", do: (*episode).stop, bounded: true},
	{name: "partition", do: (*episode).partition, cutOff: true, bounded: true, ends: clusterStops},
}

var sentinelFaults = []*fault{
	{name: "kill -9", do: (*episode).kill, bounded: true},
	{name: "SENTINEL FAILOVER", do: (*episode).sentinelFailover},
	{name: "SIGSTOP, SIGCONT", do: (*episode).stop},
	{name: "partition", do: (*episode).partition, cutOff: true},
	{name: "partition, min-replicas-to-write", do: (*episode).partition, cutOff: true, fenced: true, bounded: true, ends: fencedStops},
}

func (e *episode) kill() {
	e.fails()
	e.old.run.Kill()
	e.demoted = now()
	e.awaitNew()
	if e.d.kind == "sentinel" {
		e.must(e.old.run.Restart("--replicaof", e.new.ip, "6379"))
	} else {
		e.must(e.old.run.Restart())
	}
}

func (e *episode) clusterFailover() { e.clusterCommand() }
func (e *episode) clusterForce()    { e.clusterCommand("FORCE") }
func (e *episode) clusterTakeover() { e.clusterCommand("TAKEOVER") }

func (e *episode) clusterCommand(option ...any) {
	e.fails()
	for _, n := range e.shard.nodes {
		if n != e.old {
			e.must(n.Do(ctx, append([]any{"CLUSTER", "FAILOVER"}, option...)...).Err())
		}
	}
	e.awaitNew()
	e.awaitDemotion()
}

func (e *episode) sentinelFailover() {
	e.fails()
	e.must(e.d.sentinels[e.random.IntN(3)].Do(ctx, "SENTINEL", "FAILOVER", "m").Err())
	e.awaitNew()
	e.awaitDemotion()
}

// stop stops the master until another one serves. Then there are two for a moment.
func (e *episode) stop() {
	e.fails()
	e.must(e.old.run.Pause())
	e.awaitNew()
	time.Sleep(e.someTime(300 * time.Millisecond))
	e.resumed = now()
	e.must(e.old.run.Resume())
	e.awaitDemotion()
}

// partition cuts the master off together with the island, whose clients go on asking it.
func (e *episode) partition() {
	e.fails()
	e.d.net.move("island", e.old.host, e.d.island)
	e.cut = now()
	e.awaitNew()
	time.Sleep(2*time.Second + e.someTime(500*time.Millisecond))
	e.d.net.move("main", e.old.host, e.d.island)
	e.awaitDemotion()
}

// fails notes when the fault begins, and whether another node has become the master by itself already.
func (e *episode) fails() {
	for _, n := range e.shard.nodes {
		e.early = e.early || n != e.old && n.replication("role") != "slave"
	}
	e.failed = now()
}

// awaitNew waits until another node of the shard decides, and can be found: the Sentinels hear of it
// from each other, within two seconds.
func (e *episode) awaitNew() {
	e.t.Helper()
	eventually(e.t, "a new master", func() bool {
		for _, n := range e.shard.nodes {
			if n != e.old && n.Do(ctx, "GO.THROTTLE", e.shard.tag+"probe", 0, 1, 1, 0).Err() == nil {
				e.new, e.serves = n, now()
				return true
			}
		}
		return false
	})
	eventually(e.t, "the new master has a name", func() bool {
		return !slices.ContainsFunc(e.d.sentinels, func(s *server) bool {
			name, _ := s.Do(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "m").StringSlice()
			return len(name) != 2 || name[0] != e.new.ip
		})
	})
	e.named = now()
}

// awaitDemotion waits until the old master knows that it is a replica.
func (e *episode) awaitDemotion() {
	e.t.Helper()
	eventually(e.t, "the old master becomes a replica", func() bool { return e.old.replication("role") == "slave" })
	e.demoted = now()
}
