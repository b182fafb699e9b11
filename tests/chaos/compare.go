package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"gothrottle/funnel/oracle"
)

// value is what a key holds.
type value struct {
	typ    string
	expire int64 // ms since the Unix epoch; -1: none
	text   string
	fields map[string]string  // of a hash
	scores map[string]float64 // of a sorted set
}

func (v *value) String() string { return fmt.Sprintf("%s until %d: %s", v.typ, v.expire, v.text) }

// dataset returns every key of a server, by database and name.
func (r *run) dataset(s *server) map[string]*value {
	all := map[string]*value{}
	for db := range databases {
		p := s.client.Pipeline()
		p.Do(ctx, "SELECT", db)
		keys := p.Keys(ctx, "*")
		p.Do(ctx, "SELECT", 0)
		_, _ = p.Exec(ctx)
		names := keys.Val()
		p = s.client.Pipeline()
		p.Do(ctx, "SELECT", db)
		for _, name := range names {
			p.Type(ctx, name)
			p.Do(ctx, "PEXPIRETIME", name)
			p.HGetAll(ctx, name)
			p.Get(ctx, name)
			p.ZRangeWithScores(ctx, name, 0, -1)
		}
		p.Do(ctx, "SELECT", 0)
		cmds, _ := p.Exec(ctx) // most reads give an error: each value has one type only
		for i, name := range names {
			one := cmds[1+5*i : 1+5*i+5]
			v := valueOf(one)
			if v.typ != "none" {
				all[fmt.Sprintf("%d %s", db, name)] = v
			}
		}
	}
	return all
}

// valueOf puts together what TYPE, PEXPIRETIME, HGETALL, GET and ZRANGE reply of a key.
func valueOf(one []redis.Cmder) *value {
	v := &value{typ: one[0].(*redis.StatusCmd).Val()}
	v.expire, _ = one[1].(*redis.Cmd).Int64()
	switch v.typ {
	case "hash":
		v.fields = one[2].(*redis.MapStringStringCmd).Val()
		v.text = fmt.Sprintf("%q", v.fields) // in the order of names
		if len(v.fields) == 0 {
			v.typ = "none" // all fields have expired, and the server deletes the key at any time
		}
	case "string":
		v.text = one[3].(*redis.StringCmd).Val()
	case "zset":
		v.scores = map[string]float64{}
		for _, z := range one[4].(*redis.ZSliceCmd).Val() {
			v.scores[z.Member.(string)] = z.Score
			v.text += fmt.Sprintf("%.17g %q, ", z.Score, z.Member)
		}
	}
	return v
}

// alike compares two data sets. A key whose expiry is near may be in one of them only if the clock
// runs.
func (r *run) alike(what string, want, got map[string]*value) error {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		a, b := want[key], got[key]
		switch {
		case key == "0 "+probeKey, r.expires(a):
		case b == nil:
			return r.differ("%s: %s is gone, it was %v", what, key, a)
		case a.String() != b.String():
			return r.differ("%s: %s is %v, want %v", what, key, b, a)
		}
	}
	for key, b := range got {
		if want[key] == nil && key != "0 "+probeKey && !r.expires(b) {
			return r.differ("%s: %s is there: %v", what, key, b)
		}
	}
	return nil
}

// expires reports whether a key expires about now.
func (r *run) expires(v *value) bool {
	return v.expire > 0 && v.expire <= int64(r.m.wall/1000)+1+r.m.blur
}

// attach makes the other servers replicas of the master.
func (r *run) attach() error {
	for _, s := range []*server{r.twin, r.plain} {
		if reply := s.ask("REPLICAOF", "127.0.0.1", r.master.Port); !strings.HasPrefix(reply, "OK") {
			return r.differ("REPLICAOF: %s", reply)
		}
	}
	return nil
}

// inStep waits until the replicas have received everything.
func (r *run) inStep() error {
	return r.eventually("the replicas have received everything", func() bool {
		for _, s := range []*server{r.twin, r.plain} {
			if s.info("replication", "master_link_status") != "up" ||
				s.info("replication", "slave_repl_offset") != r.master.info("replication", "master_repl_offset") {
				return false
			}
		}
		return true
	})
}

// compare checks what must hold at all times.
func (r *run) compare() error {
	if err := r.inStep(); err != nil {
		return err
	}
	all := r.dataset(r.master)
	if err := r.inStep(); err != nil { // keys that a look found expired
		return err
	}
	twin, plain := r.dataset(r.twin), r.dataset(r.plain)
	r.look()
	if err := r.alike("the replica with the module", all, twin); err != nil {
		return err
	}
	if err := r.alike("the replica without the module", all, plain); err != nil {
		return err
	}
	if err := r.holds(all); err != nil {
		return err
	}
	for _, s := range []*server{r.master, r.twin} {
		if n := s.info("gothrottle", "gothrottle_panics"); n != "0" {
			return r.differ("the module's panics: %q", n)
		}
		if line := warning(s.LogFile); line != "" {
			return r.differ("the log of the %s: %s", s.name, line)
		}
	}
	r.stats.compared += len(all)
	r.stats.sample(r.master)
	return r.effects.check(r, filepath.Join(r.master.Folder, "appendonlydir"))
}

var warningLine = regexp.MustCompile(`(?m)^.*(?:# <(?:gothrottle|module)>|=== REDIS BUG REPORT|=== VALKEY BUG REPORT).*$`)

// warning returns a line of the log in which the module warns, or the server reports a crash. Valkey
// 9.1 asks modules to unload when it ends.
func warning(file string) string {
	b, _ := os.ReadFile(file)
	for _, line := range warningLine.FindAll(b, -1) {
		if !bytes.Contains(line, []byte("cannot be unloaded")) {
			return string(line)
		}
	}
	return ""
}

// holds checks that the keys hold the states of the model, and that each has an expiry.
func (r *run) holds(all map[string]*value) error {
	for db := range r.m.dbs {
		for name := range r.m.dbs[db] {
			e, v := r.m.at(db, name), all[fmt.Sprintf("%d %s", db, name)]
			if e == nil || e.kind == 'u' || r.m.void(e) || v != nil && r.expires(v) {
				continue
			}
			if v == nil {
				return r.differ("the limiter %s of database %d is gone", name, db)
			}
			if v.expire < 0 && !e.free {
				return r.differ("%s has no expiry: %v", name, v)
			}
			if what := r.state(e, v); what != "" {
				return r.differ("%s of database %d: %s; it is %v", name, db, what, v)
			}
		}
	}
	return nil
}

// state returns what is wrong with the value of a key.
func (r *run) state(e *entry, v *value) string {
	end := int64(0) // until when the key is needed, in ms
	switch {
	case e.kind == 'f' || e.tainted || e.adopted:
		return ""
	case e.kind == 't':
		for i, o := range e.cells {
			if o.Void(r.m.now.Nanos()) {
				continue
			}
			if what := cellState(i, o, v.fields); what != "" {
				return what
			}
			empty, _ := o.State()
			whole, _ := empty.Float64()
			end = max(end, int64(whole/1e6)-1, int64(o.Locked())/1e6)
		}
	case e.kind == 'q':
		used, at := e.quota.State()
		end = int64(at / 1000)
		if want := fmt.Sprintf("%d@%019d", used, at.Nanos()); v.text != want {
			return "want " + want
		}
	case e.kind == 'l':
		held, n := e.lease.Held(r.m.now), 0
		for member, score := range v.scores {
			if int64(-score) > int64(r.m.now) {
				n++
				if member == "" || int64(held[member[1:]]) != int64(-score) {
					return fmt.Sprintf("want %v", held)
				}
			}
		}
		if n != len(held) {
			return fmt.Sprintf("want %v", held)
		}
		for _, at := range held {
			end = max(end, int64(at/1000))
		}
	}
	if e.expire == 0 && !e.free && v.expire < end {
		return fmt.Sprintf("it expires before %d", end)
	}
	if e.expire == 0 && !e.free && e.latest > 0 && v.expire > e.latest {
		return fmt.Sprintf("it expires after %d", e.latest)
	}
	return ""
}

// cellState returns what is wrong with the fields of a cell.
func cellState(i int, o *oracle.Throttle, fields map[string]string) string {
	want := o.Fields(i)
	for _, n := range []int{4 * i, 4*i + 1, 4*i + 2, 4*i + 3, 128 + i} {
		name := strconv.Itoa(n)
		if got, there := fields[name]; got != want[name] || there != (want[name] != "") {
			return fmt.Sprintf("field %s is %q, want %q", name, got, want[name])
		}
	}
	return ""
}

// dataBytes is the memory of the data, without that of clients and buffers.
func dataBytes(s *server) int64 {
	return s.number("memory", "used_memory") - s.number("memory", "used_memory_overhead")
}

// mostLeft bounds the memory that may be in use after FLUSHALL beyond that of the start, in bytes.
const mostLeft = 2 << 20

// emptied checks that FLUSHALL gives all memory back.
func (r *run) emptied() error {
	r.master.ask("FLUSHALL", "SYNC")
	r.m.clear()
	r.master.ask("SCRIPT", "FLUSH", "SYNC")
	err := r.eventually("a thread has freed what was deleted before", func() bool {
		return r.master.info("memory", "lazyfree_pending_objects") == "0"
	})
	var left int64
	for range 100 {
		if left = dataBytes(r.master) - r.memory; left <= mostLeft || err != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return r.differ("%d bytes are left after FLUSHALL", left)
}

// effects reads what the server appends to its AOF: the effects of calls.
type effects struct {
	read map[string]int64 // how far each file was read
}

// forget makes the next check begin at the end of the files.
func (e *effects) forget() { e.read = nil }

// check reads what was appended and looks for an effect that comes twice in one transaction.
func (e *effects) check(r *run, folder string) error {
	files, _ := filepath.Glob(filepath.Join(folder, "*.incr.aof"))
	first := e.read == nil
	if first {
		e.read = map[string]int64{}
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			continue // a rewrite has removed it
		}
		_, _ = f.Seek(e.read[name], io.SeekStart)
		b, _ := io.ReadAll(f)
		f.Close()
		n, what := wrongEffect(b)
		e.read[name] += int64(n)
		if what != "" && !first {
			return r.differ("in the AOF: %s", what)
		}
	}
	return nil
}

var effectNames = map[string]bool{"HSET": true, "HDEL": true, "ZADD": true, "ZREM": true, "SET": true, "PEXPIREAT": true, "DEL": true}

// wrongEffect reads commands. It returns how many bytes were read, and what is wrong with an effect
// within a transaction: it comes twice in a row, or an entry of a window is removed before another one
// is added.
func wrongEffect(b []byte) (n int, what string) {
	in := bufio.NewReader(bytes.NewReader(b))
	inside, last := false, []string{""}
	for {
		words, size := command(in)
		if words == nil {
			return n, what
		}
		n += size
		words[0] = upper(words[0])
		switch {
		case words[0] == "MULTI":
			inside = true
		case words[0] == "EXEC":
			inside = false
		case !inside:
		case effectNames[words[0]] && slices.Equal(words, last):
			what = fmt.Sprintf("%q stands twice", words)
		case words[0] == "ZREM" && words[2][0] == 1 && (last[0] != "ZADD" || last[1] != words[1]):
			what = fmt.Sprintf("%q stands before ZADD", words)
		}
		last = words
	}
}

// command reads a command in the form of the protocol; nil at the end.
func command(in *bufio.Reader) (words []string, size int) {
	number := func(mark byte) int {
		line, err := in.ReadString('\n')
		size += len(line)
		if err != nil || len(line) < 3 || line[0] != mark {
			return -1
		}
		n, err := strconv.Atoi(strings.TrimSpace(line[1:]))
		if err != nil {
			return -1
		}
		return n
	}
	n := number('*')
	for range n {
		b := make([]byte, max(number('$'), 0)+2)
		if _, err := io.ReadFull(in, b); err != nil {
			return nil, 0
		}
		size += len(b)
		words = append(words, string(b[:len(b)-2]))
	}
	return words, size
}
