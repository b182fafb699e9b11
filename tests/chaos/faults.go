package main

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gothrottle/tests/corpus"
	servers "gothrottle/tests/server"
	"gothrottle/tests/world"
)

// fault is something that happens to a server. After each fault the run compares all data.
type fault struct {
	name   string
	weight int // how often it comes, beside the others
	many   int // how often it comes while many clients make calls; all faults that come then are in the midst of calls
	run    func(r *run, st *step)
	amid   bool     // it comes in the midst of the calls of its step
	texts  []string // one of them is the Text of the step
}

// faults is the table of all faults. A new fault is a new row.
var faults []fault

func init() {
	faults = []fault{
		{name: "bgsave", weight: 6, run: inBackground("BGSAVE")},
		{name: "aof-rewrite", weight: 6, run: inBackground("BGREWRITEAOF")},
		{name: "reload", weight: 6, run: (*run).reload},
		{name: "restart-aof", weight: 4, run: (*run).restartAOF},
		{name: "restart-rdb", weight: 4, run: (*run).restartRDB},
		{name: "kill-9", weight: 6, many: 10, run: (*run).killed, amid: true},
		{name: "sigstop", weight: 4, many: 20, run: (*run).stopped, amid: true},
		{name: "client-kill", weight: 5, many: 5, run: (*run).clientsKilled, amid: true},
		{name: "client-pause", weight: 4, many: 5, run: (*run).paused, amid: true},
		{name: "blocked", weight: 4, many: 5, run: (*run).blocked, amid: true},
		{name: "flushall", weight: 3, run: func(r *run, _ *step) { r.emptied() }},
		{name: "flood", weight: 1, run: (*run).flood},
		{name: "evict", weight: 4, run: (*run).evicted, amid: true, texts: []string{"noeviction", "allkeys-random", "allkeys-lru", "volatile-ttl"}},
		// The replicas come back and resynchronise in part.
		{name: "replica-killed", weight: 4, run: func(r *run, _ *step) { r.master.ask("CLIENT", "KILL", "TYPE", "replica") }},
		{name: "resync", weight: 4, run: (*run).resynced},
		{name: "promote", weight: 4, run: (*run).promoted},
		{name: "failover", many: 5, run: (*run).failedOver},
		{name: "master-lost", many: 5, run: (*run).masterLost},
		{name: "policies", weight: 6, run: func(r *run, st *step) { r.configure(st.Text, r.master, r.twin) }, texts: world.PolicyTexts},
		{name: "defrag", weight: 2, run: (*run).defragment},
		{name: "purge", weight: 2, run: func(r *run, _ *step) { r.master.ask("MEMORY", "PURGE") }},
		{name: "del-foreign", weight: 6, run: (*run).deleteForeign},
		{name: "hostile", weight: 4, run: (*run).hostile, amid: true},
		{name: "clock-restart", weight: 4, run: (*run).clockRestarted, texts: []string{"-3600", "-60", "-1", "1", "60", "4000"}},
		{name: "load-mode", weight: 4, run: (*run).loadedOtherwise, texts: []string{"swapdb no", "on-empty-db no", "disabled no", "swapdb yes", "disabled yes"}},
		// The replica without the module becomes one of the other replica, until a fault attaches both to the master.
		{name: "chain", weight: 3, run: func(r *run, _ *step) { r.accept(r.plain, "REPLICAOF", "127.0.0.1", r.twin.Port) }},
	}
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

func (r *run) eventually(what string, ok func() bool) {
	if err := servers.Await(what, ok); err != nil {
		r.differ("%v; master: %s; replica: %s", err, r.master.tail(), r.twin.tail())
	}
}

// accept sends a command that must be accepted.
func (r *run) accept(s *server, words ...any) {
	if reply := s.ask(words...); !strings.HasPrefix(reply, "OK") {
		r.differ("%v: %s", words, reply)
	}
}

func (r *run) reload(*step) {
	r.quiet(r.master)
	if _, err := r.master.Do("DEBUG", "RELOAD"); err != nil { // see movesWrongly
		r.differ("DEBUG RELOAD: %v", err)
	}
	// Neither the AOF nor the replicas learn of the expired keys that the server left out.
	r.master.ask("BGREWRITEAOF")
	r.quiet(r.master)
	r.resynced(nil)
}

func (r *run) restartAOF(*step) {
	r.catchUp()
	r.master.Terminate()
	r.again()
}

// again starts the master on its data, with further arguments, and connects everything to it.
func (r *run) again(args ...string) {
	r.master.hangUp()
	if err := r.master.restart(args...); err != nil {
		r.differ("the server does not start: %v", err)
	}
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
	calls, done := step{Conn: st.Conn, DB: st.DB, Via: st.Via, Calls: st.Calls}, make(chan error, 1)
	if st.Via == "replica" || st.Via == "parallel" {
		calls.Via = "plain"
	}
	work := func() { r.calls(&calls) }
	if r.many != nil {
		work = r.many
	}
	go func() { done <- attempt(work) }()
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

func (r *run) stopped(st *step) {
	must(r.master.Pause())
	r.amid(st, func() { must(r.master.Resume()) })
}

func (r *run) clientsKilled(st *step) {
	r.amid(st, func() { r.master.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes") })
	r.master.hangUp()
}

func (r *run) paused(st *step) {
	r.master.conn(st.Conn).Ping(ctx)
	r.master.ask("CLIENT", "PAUSE", "1000000000", "WRITE")
	r.amid(st, func() { r.accept(r.master, "CLIENT", "UNPAUSE") })
}

// blocked makes calls while another client waits in BLPOP.
func (r *run) blocked(st *step) {
	waits := r.master.connect(3)
	defer waits.Close()
	done := make(chan string, 1)
	go func() { done <- replyText(waits.Do(ctx, "BLPOP", "waiting", "0")) }()
	r.eventually("a client waits", func() bool { return r.master.info("clients", "blocked_clients") != "0" })
	r.amid(st, func() {})
	r.master.ask("LPUSH", "waiting", "x")
	if got := <-done; got != "[waiting:x]" {
		r.differ("BLPOP: %s", got)
	}
}

// evicted makes calls while memory is short. Limiters may be evicted, so the calls look at their keys first.
func (r *run) evicted(st *step) {
	limit := r.master.number("memory", "used_memory") - st.N
	r.master.ask("CONFIG", "SET", "maxmemory-policy", st.Text, "maxmemory", limit)
	via := "look"
	if st.Text == "noeviction" {
		via = "multi"
	}
	for calls := range slices.Chunk(st.Calls, 1) {
		s := send(r.master.conn(st.Conn), st.DB, via, calls)
		if kind, _, _ := strings.Cut(s.failed, " "); kind != "-EXECABORT" && kind != "-OOM" {
			r.check(s)
		}
	}
	r.master.ask("CONFIG", "SET", "maxmemory", 0, "maxmemory-policy", "noeviction")
	if st.Text != "noeviction" {
		r.emptied()
	}
}

// hostileCalls are the calls of another module at the key @: see testdata/hostile.c.
var hostileCalls = []string{"SET @ theirs", "HSET @ theirs theirs", "ZADD @ 1 theirs", "APPEND @ theirs", "DEL @", "PEXPIRE @ 1", "PERSIST @",
	"RENAME @ elsewhere", "COPY theirs @ REPLACE", "MOVE @ 1", "delete", "expire", "GO.THROTTLE @ 3 1 60", "GO.WINDOW @ 3 60", "GO.QUOTA @ 3 60",
	"GO.LEASE @ 3 60 theirs", "GO.ALL @ QUOTA 3 60", "FLUSHALL", "SWAPDB 0 1"}

// hostile makes calls while another module changes their keys in events, and before the commands that ours runs. The server
// must live. The model cannot know what comes of the keys, so they are deleted afterwards. The server's own cycle that looks
// for expired keys does not survive such a module (a segfault in activeExpireCycle of Redis 7.0), so it rests meanwhile.
func (r *run) hostile(st *step) {
	r.master.ask("DEBUG", "SET-ACTIVE-EXPIRE", "0")
	defer r.master.ask("DEBUG", "SET-ACTIVE-EXPIRE", "1")
	random := rand.New(rand.NewPCG(uint64(st.N), 0))
	one := func(words string) string { return world.Pick(random, strings.Fields(words)...) }
	const keys = "t0 t1 t2 t3 w0 w1 w2 q0 q1 q2 l0 l1 l2"
	for range 20 {
		p := r.master.conn(st.Conn).Pipeline()
		p.Do(ctx, "SELECT", st.DB)
		for _, words := range st.Calls {
			p.Do(ctx, "HOSTILE", "now", one(keys), "expire") // so that a call finds an expired key
			key, event, call := one(keys), one("expired keymiss new hset zadd set del expire filter"), world.Pick(random, hostileCalls...)
			if keys := keysOf(words); event == "filter" && len(keys) > 0 && keys[0] != "" {
				key = keys[0]
			}
			if strings.HasPrefix(call, "MOVE") && r.lab.movesWrongly() {
				call = "delete"
			}
			p.Do(ctx, append([]any{"HOSTILE", event, key}, corpus.Args(strings.Fields(strings.ReplaceAll(call, "@", key)))...)...)
			p.Do(ctx, corpus.Args(words)...)
		}
		off := p.Do(ctx, "HOSTILE", "never", "t0", "DEL")
		if _, _ = p.Exec(ctx); off.Err() != nil {
			r.differ("another module changed keys meanwhile: %q: %v", st.Calls, off.Err())
		}
	}
	r.emptied()
}

// resynced makes a replica go astray for a moment and then load everything again.
func (r *run) resynced(*step) {
	for _, s := range []*server{r.twin, r.plain} {
		s.ask("REPLICAOF", "NO", "ONE")
		s.ask("SET", "astray", "1")
	}
	r.attach()
}

// promoted makes the replica with the module the master.
func (r *run) promoted(*step) {
	r.catchUp()
	r.inStep()
	// Until a replica that has loaded everything has rewritten its append-only file, it would start with the old one.
	r.quiet(r.twin)
	r.accept(r.twin, "REPLICAOF", "NO", "ONE")
	r.exchange()
}

// exchange makes the replica that has become a master the master of the others.
func (r *run) exchange() {
	r.master, r.twin = r.twin, r.master
	r.twin.hangUp()
	r.prepare(r.master)
	r.attach()
	r.tick()
}

// failedOver lets the master and the replica change places in good order.
func (r *run) failedOver(st *step) {
	r.amid(st, func() {
		r.accept(r.master, "FAILOVER", "TO", "127.0.0.1", r.twin.Port)
		r.eventually("the replica is the master", func() bool {
			return r.twin.info("replication", "role") == "master" && r.master.info("replication", "role") == "slave"
		})
	})
	r.exchange()
}

// masterLost ends the master and lets the replica take its place. Units that the replica did not have are lost.
func (r *run) masterLost(st *step) {
	r.amid(st, r.master.Kill)
	r.accept(r.twin, "REPLICAOF", "NO", "ONE")
	must(r.master.restart())
	r.exchange()
}

// clockRestarted kills the master and starts it again with its clock set by so many seconds. The module's clock then does not
// know what it showed before.
func (r *run) clockRestarted(st *step) {
	r.master.Kill()
	n := number(st.Text) * second
	r.move(n, max(n, 0), func() { r.again() })
}

// loadedOtherwise makes the replicas load everything in one of the ways that servers have. Only Valkey has the second channel.
func (r *run) loadedOtherwise(st *step) {
	mode, second, _ := strings.Cut(st.Text, " ")
	for _, s := range []*server{r.master, r.twin, r.plain} {
		s.ask("CONFIG", "SET", "repl-diskless-sync", "yes", "repl-diskless-load", mode)
		s.ask("CONFIG", "SET", "dual-channel-replication-enabled", second)
	}
	r.resynced(nil)
}

// configure sets the policies of servers and of the model.
func (r *run) configure(policies string, all ...*server) {
	r.m.setPolicies(policies)
	for _, s := range all {
		r.accept(s, "CONFIG", "SET", "gothrottle.policies", policies)
	}
}

func (r *run) defragment(*step) {
	reply := r.master.ask("CONFIG", "SET", "activedefrag", "yes", "active-defrag-ignore-bytes", "1", "active-defrag-threshold-lower", "1")
	if strings.HasPrefix(reply, "-") {
		r.stats.tally["active defragmentation is refused"]++
	}
}

// deleteForeign deletes the keys that aren't limiters, or of which nothing is known.
func (r *run) deleteForeign(*step) {
	r.deleteKeys(func(db int, name string) bool {
		reply, _ := r.m.call(db, []string{"GO.INFO", name})
		return r.m.dbs[db].doubt[name] || reply[0] == '-'
	})
}

// deleteKeys deletes keys of which the model knows, or which are in doubt.
func (r *run) deleteKeys(chosen func(db int, name string) bool) {
	for db, d := range r.m.dbs {
		p := r.master.client.Pipeline()
		p.Do(ctx, "SELECT", db)
		for _, name := range slices.AppendSeq(d.Keys(), maps.Keys(d.doubt)) {
			if chosen(db, name) {
				p.Do(ctx, "DEL", name)
				r.take(fmt.Sprintf("%d %s", db, name), nil, false)
			}
		}
		p.Do(ctx, "SELECT", 0)
		if _, err := p.Exec(ctx); err != nil {
			r.differ("DEL: %v", err)
		}
	}
}
