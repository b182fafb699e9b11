package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gothrottle/commands"
	"gothrottle/commands/memory"
	"gothrottle/tests/corpus"
	"gothrottle/tests/world"
)

// dump is what a DUMP replied, and when the key expires; 0: never.
type dump struct {
	payload string
	at      int64
}

// foreignStep makes a command of the server at keys of limiters. Before it, all keys hold what the model holds. After it,
// the model holds what they hold.
func (r *run) foreignStep(st *step) {
	w, names := r.foreignWords(st)
	if w == nil {
		return
	}
	before := r.dataset(r.master)
	r.holds(before)
	p := r.master.conn(st.Conn).Pipeline()
	p.Do(ctx, "SELECT", st.DB)
	c := p.Do(ctx, w...)
	_, _ = p.Exec(ctx)
	reply := replyText(c)
	r.stats.tally[numForeign]++
	switch refused := strings.HasPrefix(reply, "-"); {
	case reply == lost:
		r.differ("%q: no reply", st.Calls[0])
	case w[0] == "RESTORE" && refused != (st.Calls[0][2] == "damaged"):
		r.differ("%q: %s", st.Calls[0], reply)
	case w[0] == "SWAPDB":
		slices.Reverse(r.m.dbs)
	case w[0] == "FLUSHDB":
		r.m.dbs[st.DB] = r.m.newDatabase()
	case w[0] == "DUMP" && !refused && reply != "<nil>":
		r.dump = dump{payload: reply}
		if v := before[fmt.Sprintf("%d %s", st.DB, names[0])]; v != nil {
			r.dump.at = v.Expire
		}
	}
	after := r.dataset(r.master)
	doubt := slices.ContainsFunc(names, func(name string) bool { return r.m.dbs[0].doubt[name] || r.m.dbs[1].doubt[name] })
	for i := range 2 * len(names) {
		key := fmt.Sprintf("%d %s", i%2, names[i/2])
		v := after[key]
		r.take(key, v, v != nil && v.Kind == commands.KindHash && (doubt || w[0] == "HPEXPIRE")) // fields may expire
	}
}

// foreignWords returns the words of a foreign command, and the names of the keys that it reads or writes.
func (r *run) foreignWords(st *step) (w []any, names []string) {
	w = corpus.Args(st.Calls[0])
	switch w[0] {
	case "SWAPDB", "FLUSHDB":
		return w, nil
	case "RENAME", "COPY":
		return w, st.Calls[0][1:3]
	case "MOVE":
		if r.lab.movesWrongly() {
			return nil, nil
		}
		w[2] = 1 - st.DB
	case "RESTORE":
		payload := []byte(r.dump.payload)
		if len(payload) == 0 {
			return nil, nil
		}
		if w[2] == "damaged" {
			payload[len(payload)/2] ^= 0x55
		}
		w = []any{w[0], w[1], r.dump.at, payload, "REPLACE", "ABSTTL"}
	}
	return w, st.Calls[0][1:2]
}

// take makes the model hold a value at a key.
func (r *run) take(key string, v *memory.Value, doubt bool) {
	d, name := r.m.at(key)
	d.Put(name, v)
	if delete(d.doubt, name); doubt {
		d.doubt[name] = true
	}
}

// takeExpired makes the model hold what the server holds of the keys that had expired up to a time, in ms, before the clock
// was set back. The server may have deleted them or not.
func (r *run) takeExpired(all map[string]*memory.Value, upTo int64) {
	both := r.m.dataset()
	maps.Copy(both, all)
	for key, v := range both {
		if d, name := r.m.at(key); v.Expire > 0 && v.Expire <= upTo && !d.doubt[name] {
			d.Put(name, all[key])
		}
	}
}

// foreign makes a command of the server at a key of a limiter.
func (g *generator) foreign() words {
	kind := world.Pick[byte](g.Rand, 't', 'w', 'q', 'l')
	key, other := g.Name(kind), g.Name(kind)
	late := text((max(g.wall, g.high) + g.Int64N(100*second)) / 1000)
	forms := []words{
		{"DEL", key}, {"UNLINK", key}, {"DEL", key}, {"GETDEL", key},
		{"SET", g.Name('t'), text(g.wall*1000 + g.Int64N(100*second)*1000)}, {"SET", key, world.Pick(g.Rand, "x", "5", strings.Repeat("y", 25))},
		{"HSET", key, "x", "1"}, {"HSET", g.Name('t'), "0", "1.5"}, {"HDEL", key, "x"}, {"HDEL", g.Name('t'), "x"}, {"ZADD", key, "1", "alice"}, {"LPUSH", key, "a"},
		{"EXPIRE", key, text(g.Int64N(60))}, {"PEXPIREAT", key, late}, {"PERSIST", key},
		{"RENAME", key, other}, {"COPY", key, other, "REPLACE"}, {"MOVE", key, ""},
		{"DUMP", key}, {"RESTORE", key, world.Pick(g.Rand, "", "", "damaged")},
		{"HINCRBY", g.Name('t'), "0", "1000000"}, {"APPEND", g.Name('q'), "1"}, {"ZREM", key, "\x010"},
		{"HPEXPIRE", g.Name('t'), "5000", "FIELDS", "1", "0"},
		{"TTL", key}, {"TYPE", key}, {"OBJECT", "ENCODING", key}, {"HGETALL", g.Name('t')}, {"ZRANGE", g.Name('w'), "0", "-1"},
		{"SWAPDB", "0", "1"}, {"FLUSHDB"},
	}
	return world.Pick(g.Rand, forms...)
}
