package main

import "strings"

// More rows of the table of faults: what combines restarts, clocks and replicas.
func init() {
	faults = append(faults,
		fault{name: "clock-restart", weight: 4, run: (*run).clockRestarted, texts: []string{"-3600", "-60", "-1", "1", "60", "4000"}},
		fault{name: "load-mode", weight: 4, run: (*run).loadedOtherwise, texts: []string{"swapdb no", "on-empty-db no", "disabled no", "swapdb yes", "disabled yes"}},
		fault{name: "chain", weight: 3, run: (*run).chained},
	)
}

// clockRestarted kills the master and starts it again with its clock set by so many seconds. The module's clock then does not
// know what it showed before.
func (r *run) clockRestarted(st *step) error {
	r.master.Kill()
	n := number(st.Text) * second
	return r.moveAnd(n, max(n, 0), func() error { return r.again() })
}

// loadedOtherwise makes the replicas load everything in one of the ways that servers have. Only Valkey has the second channel.
func (r *run) loadedOtherwise(st *step) error {
	mode, second, _ := strings.Cut(st.Text, " ")
	for _, s := range []*server{r.master, r.twin, r.plain} {
		s.ask("CONFIG", "SET", "repl-diskless-sync", "yes", "repl-diskless-load", mode)
		s.ask("CONFIG", "SET", "dual-channel-replication-enabled", second)
	}
	return r.resynced(nil)
}

// chained makes the replica without the module a replica of the other one, until a fault attaches both to the master.
func (r *run) chained(*step) error {
	if reply := r.plain.ask("REPLICAOF", "127.0.0.1", r.twin.Port); !strings.HasPrefix(reply, "OK") {
		return r.differ("REPLICAOF: %s", reply)
	}
	return nil
}
