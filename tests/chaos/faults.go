package main

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"gothrottle/tests/world"
)

// fault is something that happens to a server. After each fault the run compares all data.
type fault struct {
	name   string
	weight int // how often it comes, beside the others
	run    func(r *run, st *step)
	amid   bool     // it comes in the midst of the calls of its step
	texts  []string // one of them is the Text of the step
}

// faults returns the table of all faults. A new fault is a new row.
func faults() []fault {
	return []fault{
		{name: "bgsave", weight: 6, run: inBackground("BGSAVE")},
		{name: "aof-rewrite", weight: 6, run: inBackground("BGREWRITEAOF")},
		{name: "reload", weight: 6, run: (*run).reload},
		{name: "restart-rdb", weight: 4, run: (*run).restartRDB},
		{name: "kill-9", weight: 9, run: (*run).killed, amid: true},
		{name: "client-kill", weight: 5, run: (*run).clientsKilled, amid: true},
		{name: "client-pause", weight: 4, run: (*run).paused, amid: true},
		{name: "flushall", weight: 3, run: func(r *run, _ *step) { r.accept(r.master, "FLUSHALL"); r.m.clear() }},
		{name: "memory-full", weight: 4, run: (*run).memoryFull, amid: true},
		// The replicas come back and resynchronise in part.
		{name: "replica-killed", weight: 4, run: func(r *run, _ *step) { r.master.ask("CLIENT", "KILL", "TYPE", "replica") }},
		{name: "resync", weight: 4, run: (*run).resynced},
		{name: "promote", weight: 8, run: (*run).promoted, texts: []string{"REPLICAOF", "FAILOVER"}},
		{name: "policies", weight: 6, run: func(r *run, st *step) { r.configure(st.Text, r.master, r.twin) }, texts: world.PolicyTexts},
		{name: "clock-restart", weight: 4, run: (*run).clockRestarted, texts: []string{"-3600", "-60", "-1", "1", "60", "4000"}},
		// The replica without the module becomes one of the other replica, until a fault attaches both to the master.
		{name: "chain", weight: 3, run: func(r *run, _ *step) { r.accept(r.plain, "REPLICAOF", "127.0.0.1", r.twin.Port) }},
	}
}

// named returns the fault of a name, or none; all faults if the name is empty.
func named(name string) []fault {
	return slices.DeleteFunc(faults(), func(f fault) bool { return name != "" && f.name != name })
}

// inBackground starts a child process. The calls after it run beside the child.
func inBackground(name string) func(*run, *step) {
	return func(r *run, _ *step) {
		if reply := r.master.ask(name); strings.HasPrefix(reply, "-") && !strings.Contains(reply, "progress") && !strings.Contains(reply, "can't") {
			r.differ("%s: %s", name, reply)
		}
	}
}

// quiet waits until no child process runs.
func (r *run) quiet(s *server) {
	r.eventually("no child process runs", func() bool {
		all, _ := s.client.Info(ctx, "persistence").Result()
		return strings.Contains(all, "rdb_bgsave_in_progress:0") && strings.Contains(all, "aof_rewrite_in_progress:0") &&
			strings.Contains(all, "aof_rewrite_scheduled:0") && !strings.Contains(all, "loading:1")
	})
}

func (r *run) reload(*step) {
	r.quiet(r.master)
	r.accept(r.master, "DEBUG", "RELOAD")
	// Neither the AOF nor the replicas learn of the expired keys that the server left out.
	r.master.ask("BGREWRITEAOF")
	r.quiet(r.master)
	r.resynced(nil)
}

// again starts the master on its data, with further arguments, and connects everything to it.
func (r *run) again(args ...string) {
	r.master.restart(args...)
	r.prepare(r.master)
	r.tick()
	r.attach()
}

func (r *run) restartRDB(*step) {
	r.catchUp()
	r.quiet(r.master)
	r.accept(r.master, "SAVE")
	r.master.Kill()
	must(os.RemoveAll(filepath.Join(r.master.Folder, "appendonlydir")))
	r.again("--appendonly", "no")
	r.master.ask("CONFIG", "SET", "appendonly", "yes")
	r.quiet(r.master)
}

// amid makes the calls of a step while a fault runs.
func (r *run) amid(st *step, fault func()) {
	calls, done := step{Via: st.Via, Calls: st.Calls}, make(chan error, 1)
	if st.Via == "replica" || st.Via == "parallel" {
		calls.Via = "plain"
	}
	go func() { done <- attempt(func() { r.calls(&calls) }) }()
	time.Sleep(time.Duration(st.N) * time.Microsecond)
	err := attempt(fault)
	must(cmp.Or(<-done, err))
}

// killed ends the master at once. All calls that were replied to are in the AOF.
func (r *run) killed(st *step) {
	r.catchUp()
	r.amid(st, r.master.Kill)
	r.again()
}

func (r *run) clientsKilled(st *step) {
	r.amid(st, func() { r.master.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes") })
	r.master.connect()
}

func (r *run) paused(st *step) {
	r.master.ask("CLIENT", "PAUSE", "1000000000", "WRITE")
	r.amid(st, func() { r.accept(r.master, "CLIENT", "UNPAUSE") })
}

// memoryFull makes calls while the server refuses those that may write.
func (r *run) memoryFull(st *step) {
	r.master.ask("CONFIG", "SET", "maxmemory", 1)
	s := send(r.master.client, "plain", st.Calls)
	r.master.ask("CONFIG", "SET", "maxmemory", 0)
	for i, w := range s.calls {
		if !strings.HasPrefix(s.replies[i], "-OOM") {
			r.checkOne(w, s.replies[i], s.doubles)
		}
	}
}

// resynced makes a replica go astray for a moment and then load everything again.
func (r *run) resynced(*step) {
	for _, s := range []*server{r.twin, r.plain} {
		s.ask("REPLICAOF", "NO", "ONE")
		s.ask("SET", "astray", "1")
	}
	r.attach()
}

// promoted makes the replica with the module the master of the others, by REPLICAOF, or by FAILOVER in good order. Until a
// replica that has loaded everything has rewritten its append-only file, it would start with the old one.
func (r *run) promoted(st *step) {
	r.catchUp()
	r.inStep()
	r.quiet(r.twin)
	if st.Text == "FAILOVER" {
		r.accept(r.master, "FAILOVER", "TO", "127.0.0.1", r.twin.Port)
	} else {
		r.accept(r.twin, "REPLICAOF", "NO", "ONE")
	}
	r.eventually("the replica is the master", func() bool {
		// Since Redis 8.6 a replica with I/O threads acknowledges when its wall clock has moved by a second.
		r.move(10*millisecond, 10*millisecond, func() {})
		return r.twin.info("replication", "role") == "master" && (st.Text != "FAILOVER" || r.master.info("replication", "role") == "slave")
	})
	r.master, r.twin = r.twin, r.master
	r.prepare(r.master)
	r.attach()
	r.tick()
}

// clockRestarted kills the master and starts it again with its clock set by so many seconds. The module's clock then does not
// know what it showed before.
func (r *run) clockRestarted(st *step) {
	r.master.Kill()
	n, err := strconv.ParseInt(st.Text, 10, 64)
	must(err)
	r.move(n*second, max(n*second, 0), func() { r.again() })
}

// configure sets the policies of servers and of the model.
func (r *run) configure(policies string, all ...*server) {
	r.m.policies = policies
	must(r.m.SetPolicies(policies))
	for _, s := range all {
		r.accept(s, "CONFIG", "SET", "gothrottle.policies", policies)
	}
}
