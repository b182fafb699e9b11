// Package memory runs the commands over maps in this process, without a server. It decides exactly as the module does,
// because the handlers are the same. The gateway limits with it while its server is unavailable, and the tests of package throttle
// and of its users run on it.
//
// This package isn't an API: it may change with every version.
package memory

import (
	"hash/maphash"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"gothrottle/commands"
	"gothrottle/funnel"
)

// Server holds keys. Its methods may be called concurrently. Calls at keys of different shards run in parallel.
type Server struct {
	shards [16]shard
	seed   maphash.Seed // of what says which shard a key is in

	// To change these, all shards are locked. To read them, one is enough.
	together bool              // every call locks all shards, and the first runs it: see share
	settings map[string]string // of CONFIG
	lag      funnel.Micros     // see SetLag
	observe  func(command []string)
}

// shard holds some of the keys, and runs the calls at them.
type shard struct {
	*Server
	mu     sync.Mutex
	engine *commands.Engine
	record commands.Call // of the running call
	items  []item        // what the running call gave to Host.Reply
	keys   map[string]*Value
	most   int // the greatest number of keys since the map was made
}

// item is one part of a reply of the shape Items.
type item struct {
	kind commands.ItemKind
	n    int64
	text string
}

// NewServer returns a server without keys and policies.
func NewServer() *Server {
	settings := map[string]string{"gothrottle.policies": "", "gothrottle.top-keys": "0"}
	s := &Server{seed: maphash.MakeSeed(), settings: settings}
	for i := range s.shards {
		sh := &s.shards[i]
		sh.Server, sh.keys = s, map[string]*Value{}
	}
	s.shards[0].begin()
	return s
}

// begin makes what the shard needs to run calls. Most servers of tests have few keys, and so few such shards.
func (s *shard) begin() {
	s.engine = commands.NewEngine(host{s})
	s.record.Keys = make([]commands.Key, 0, commands.MaxClauses)
	s.record.Clauses = make([]commands.Clause, 0, commands.MaxClauses)
}

// of returns the shard of a key.
func (s *Server) of(key string) []shard {
	i := maphash.String(s.seed, key) % uint64(len(s.shards))
	return s.shards[i : i+1]
}

func (s *Server) at(key string) *shard { return &s.of(key)[0] }

func lock(some []shard) []shard {
	for i := range some {
		some[i].mu.Lock()
	}
	return some
}

func unlock(some []shard) {
	for i := range some {
		some[i].mu.Unlock()
	}
}

// share changes what all calls share. From then on the engine of the first shard runs them, one at a time.
func (s *Server) share(change func()) {
	defer unlock(lock(s.shards[:]))
	s.together = true
	change()
}

// SetPolicies makes the policies in the text those of all calls from now on: see docs/commands.md.
func (s *Server) SetPolicies(text string) (err error) {
	s.share(func() { err = s.set("gothrottle.policies", text) })
	return err
}

// CountDenials makes GO.TOP count this many keys from now on, 0 to commands.MaxTopKeys; 0 is none. Earlier counts are forgotten.
func (s *Server) CountDenials(keys int) {
	s.share(func() { s.shards[0].engine.CountDenials(commands.NewDenials(keys)) })
}

// SetLag makes keys expire by a clock that is behind the times of the calls, as a server's is that was set back while the
// module's runs on.
func (s *Server) SetLag(lag funnel.Micros) { s.share(func() { s.lag = lag }) }

// Observe makes the server call f for each command that a server with the module would replicate: plain commands, in their
// order. f does not call the server.
func (s *Server) Observe(f func(command []string)) { s.share(func() { s.observe = f }) }

// Get returns a copy of what a key holds, even if it has expired; nil if there is no key.
func (s *Server) Get(key string) *Value {
	defer unlock(lock(s.of(key)))
	return s.at(key).keys[key].Clone()
}

// Put makes a key hold a value. The value then belongs to the server. nil or an empty value deletes the key.
func (s *Server) Put(key string, v *Value) {
	defer unlock(lock(s.of(key)))
	keys := s.at(key).keys
	delete(keys, key)
	if v != nil && !v.Empty() {
		keys[key] = v
	}
}

// Keys returns the names of all keys, even of expired ones, in their order.
func (s *Server) Keys() (names []string) {
	defer unlock(lock(s.shards[:]))
	for i := range s.shards {
		names = slices.AppendSeq(names, maps.Keys(s.shards[i].keys))
	}
	slices.Sort(names)
	return names
}

// Delete deletes a key. It reports whether there was one.
func (s *Server) Delete(key string) bool {
	defer unlock(lock(s.of(key)))
	return s.at(key).remove(key)
}

// Len returns how many keys there are at this time, without expired ones.
func (s *Server) Len(now funnel.Micros) int {
	defer unlock(lock(s.shards[:]))
	return s.size(now)
}

// size returns how many keys have not expired.
func (s *Server) size(now funnel.Micros) (n int) {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.sweep(now, len(sh.keys))
		n += len(sh.keys)
	}
	return n
}

// remove deletes a key. It reports whether there was one.
func (s *shard) remove(key string) bool {
	v := s.keys[key]
	delete(s.keys, key)
	if v != nil && s.observe != nil {
		s.observe([]string{"DEL", key})
	}
	return v != nil
}

// sweep deletes those of a few keys that have expired. A map begins anywhere, so all keys have their turn. It keeps its room
// when its keys go, so a map that has far more room than keys is made again.
func (s *shard) sweep(now funnel.Micros, few int) {
	s.most = max(s.most, len(s.keys))
	for key := range s.keys {
		if few--; few < 0 {
			break
		}
		s.alive(key, now)
	}
	if s.most > 1024 && s.most/4 > len(s.keys) {
		s.keys, s.most = maps.Collect(maps.All(s.keys)), len(s.keys)
	}
}

// sweepAny sweeps any shard, as calls may always be at keys of the same one. Few calls do, so a lock is rarely waited for.
func (s *Server) sweepAny(now funnel.Micros) {
	i := rand.IntN(len(s.shards) * len(s.shards))
	if i >= len(s.shards) {
		return
	}
	defer unlock(lock(s.shards[i : i+1]))
	if s.observe == nil { // else it would see keys go that the call has nothing to do with
		s.shards[i].sweep(now-s.lag, swept*len(s.shards))
	}
}

// alive returns what a key of the shard holds, or nil. A key that has expired is deleted.
func (s *shard) alive(key string, now funnel.Micros) *Value {
	v := s.keys[key]
	if v != nil && v.Expired(now) {
		s.remove(key)
		return nil
	}
	return v
}

// Error is the text of an error reply.
type Error string

func (e Error) Error() string { return string(e) }

// RedisError marks the type as an error reply for go-redis.
func (Error) RedisError() {}

// swept is how many keys a call looks at for expired ones, on average: more than most calls make.
const swept = 4

// Do runs a command line at a time: a command of gothrottle, or one of the server's own that package memory knows. The reply
// is an int64, a string, nil, or a []any or Map of such replies, or a Status; an error is of the type Error. At the time 0 no key has expired: so replicas wait for their master to delete a key.
func (s *Server) Do(now funnel.Micros, words ...string) (any, error) {
	if len(words) == 0 {
		return nil, Error("ERR empty command")
	}
	row := commands.Find(words[0])
	defer s.sweepAny(now)
	locked := s.lockFor(row, words)
	defer unlock(locked)
	sh := &locked[0]
	if sh.engine == nil {
		sh.begin()
	}
	if row == nil {
		return sh.doPlain(now, words)
	}
	if err := wrongArity(row, len(words)); err != nil {
		return nil, err
	}
	sh.items = sh.items[:0]
	c := &sh.record
	*c = commands.Call{Args: words[1:], Now: now, Keys: c.Keys[:0], Cells: c.Cells[:0], Clauses: c.Clauses[:0]}
	defer func() { c.Args = nil }()
	if code := sh.run(row, c); code != commands.NoError {
		return nil, Error(c.AppendError(nil, code))
	}
	return sh.reply(), nil
}

// lockFor locks the shards that a call needs, and returns them: that of its key, or all for any other call. The first one runs
// the call. A call with further keys has the word KEY.
func (s *Server) lockFor(row *commands.Command, words []string) []shard {
	isKEY := func(word string) bool { return strings.EqualFold(word, "KEY") }
	if row != nil && !row.NoKey && len(words) > 1 && (row.Plan == nil || row.OneKey || !slices.ContainsFunc(words[2:], isKEY)) {
		one := lock(s.of(words[1]))
		if !s.together {
			return one
		}
		unlock(one)
	}
	return lock(s.shards[:])
}

func (s *shard) run(row *commands.Command, c *commands.Call) commands.ErrorCode {
	switch {
	case row.Plan != nil:
		if code := s.engine.Plan(row, c); code != commands.NoError {
			return code
		}
	case !row.NoKey:
		c.Keys = c.Keys[:1]
		k := &c.Keys[0]
		k.Word, k.Wants, k.Asked = 0, row.State, 0
		if row.State == commands.KindHash || row.State == commands.KindAny {
			k.Asked = 1
		}
	}
	for i := range c.Keys {
		s.load(c, &c.Keys[i])
	}
	code := s.engine.Run(row, c)
	if code != commands.NoError || !row.Writes() {
		return code
	}
	for _, made := range []bool{false, true} { // the keys that are made come last
		for i := range c.Keys {
			k := &c.Keys[i]
			if made == (k.Kind == commands.KindAbsent || k.Becomes == commands.Hash && k.Kind != commands.KindHash) {
				s.apply(c, k)
			}
		}
	}
	return commands.NoError
}

// load gives the call the contents of a key.
func (s *shard) load(c *commands.Call, k *commands.Key) {
	*k = commands.Key{Word: k.Word, Wants: k.Wants, Asked: k.Asked, Entries: k.Entries[:0], NewText: k.NewText, ExpiresAt: -1,
		FirstCell: int32(len(c.Cells))}
	any := k.Wants == commands.KindAny
	v := s.at(c.Args[k.Word]).alive(c.Args[k.Word], c.Now-s.lag)
	if v != nil {
		k.Kind, k.Length = v.Kind, int64(len(v.Text)+len(v.Fields)+len(v.Set))
		quota := k.Length >= commands.MinQuotaLen && k.Length <= commands.MaxQuotaLen
		if (any || k.Wants == commands.KindString) && quota || (any || k.Wants == commands.KindHash) && k.Length == commands.AdoptedLen {
			k.Text = v.Text
		}
		if any && v.Expire != 0 {
			k.ExpiresAt = v.Expire
		}
	}
	if k.Wants != commands.KindHash && (!any || k.Kind != commands.KindHash) {
		return
	}
	for k.NumCells < commands.MaxCells {
		cell := v.cell(int(k.NumCells))
		if k.NumCells >= k.Asked && cell.Found == 0 {
			break
		}
		c.Cells = append(c.Cells, cell)
		k.NumCells++
	}
}

func (s *shard) reply() any {
	c := &s.record
	switch c.Shape {
	case commands.Integer:
		return c.Reply[0]
	case commands.Items:
		item, _ := itemOf(s.items)
		return item
	}
	all := integers(c.Reply[:c.Replies])
	if c.Shape == commands.Nested {
		for i := range c.Clauses {
			all = append(all, integers(c.Clauses[i].Reply[:c.Clauses[i].Replies]))
		}
	}
	return all
}

// Map is a reply of keys and values, in turn.
type Map []any

func integers(numbers []int64) []any {
	all := make([]any, len(numbers))
	for i, n := range numbers {
		all[i] = n
	}
	return all
}

// itemOf returns the first item, with the items inside it, and the items after it.
func itemOf(items []item) (any, []item) {
	first, rest := items[0], items[1:]
	switch first.kind {
	case commands.ItemInteger:
		return first.n, rest
	case commands.ItemText:
		return first.text, rest
	case commands.ItemNull:
		return nil, rest
	case commands.ItemMap:
		first.n *= 2
	}
	all := make([]any, first.n)
	for i := range all {
		all[i], rest = itemOf(rest)
	}
	if first.kind == commands.ItemMap {
		return Map(all), rest
	}
	return all, rest
}
