package main

import (
	"fmt"
	"strings"
)

// dump is what a DUMP replied, and the model of it.
type dump struct {
	payload string
	at      int64 // the expiry; 0: none
	entry   *entry
}

// restored follows RESTORE with REPLACE. The server makes no key if the expiry is over.
func (m *model) restored(db int, key string, d *dump) {
	e := d.entry
	if e != nil {
		e = e.clone()
		e.expire, e.free = d.at, d.at == 0
	}
	m.put(db, key, e)
	if d.at > 0 && d.at <= int64(m.wall/1000) {
		delete(m.dbs[db], key)
	}
}

// foreignStep makes a command of the server at a key of a limiter.
func (r *run) foreignStep(st *step) error {
	w := append(words{}, st.Calls[0]...)
	switch w[0] {
	case "DUMP":
		return r.dumpKey(st, w[1])
	case "RESTORE":
		return r.restoreKey(st, w)
	case "MOVE":
		w[2] = fmt.Sprint(1 - st.DB)
	}
	r.look()
	p := r.conn(st.Conn).Pipeline()
	p.Do(ctx, "SELECT", st.DB)
	c := p.Do(ctx, anys(w)...)
	_, _ = p.Exec(ctx)
	reply := replyText(c)
	if reply == lost {
		return r.differ("%q: no reply", w)
	}
	r.stats.foreign++
	if what := r.m.foreign(st.DB, w, reply); what != "" {
		return r.differ("%q in database %d: %s", []string(w), st.DB, what)
	}
	return nil
}

func (r *run) dumpKey(st *step, key string) error {
	p := r.conn(st.Conn).Pipeline()
	p.Do(ctx, "SELECT", st.DB)
	d, at := p.Do(ctx, "DUMP", key), p.Do(ctx, "PEXPIRETIME", key)
	_, _ = p.Exec(ctx)
	r.look()
	e := r.m.at(st.DB, key)
	if d.Err() != nil {
		if e != nil && e.kind != 'u' && !r.m.void(e) {
			return r.differ("DUMP of %s: %s", key, replyText(d))
		}
		return nil
	}
	r.dump = dump{payload: d.Val().(string), entry: nil}
	if n, _ := at.Int64(); n > 0 {
		r.dump.at = n
	}
	if e != nil {
		r.dump.entry = e.clone()
	}
	return nil
}

func (r *run) restoreKey(st *step, w words) error {
	payload := []byte(r.dump.payload)
	if len(payload) == 0 {
		return nil
	}
	if w[2] == "damaged" {
		payload[len(payload)/2] ^= 0x55
	}
	p := r.conn(st.Conn).Pipeline()
	p.Do(ctx, "SELECT", st.DB)
	c := p.Do(ctx, "RESTORE", w[1], r.dump.at, payload, "REPLACE", "ABSTTL")
	_, _ = p.Exec(ctx)
	reply := replyText(c)
	switch {
	case w[2] == "damaged" && !strings.HasPrefix(reply, "-"):
		return r.differ("RESTORE of damaged data: %s", reply)
	case w[2] == "damaged":
		return nil
	case reply != "OK":
		return r.differ("RESTORE: %s", reply)
	}
	r.m.restored(st.DB, w[1], &r.dump)
	return nil
}
