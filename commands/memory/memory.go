// Package memory runs the commands over maps in this process, without a server. It decides exactly as the module does,
// because the handlers are the same. Package throttle limits with it while a server is away, and its tests and those of
// its users run on it.
//
// This package is no API: it may change with every version.
package memory

import (
	"slices"
	"strings"
	"sync"

	"gothrottle/commands"
	"gothrottle/funnel"
)

// Server holds keys. Its methods may be called concurrently.
type Server struct {
	keys     map[string]*value
	policies *commands.Policies
	sweepAt  int                  // drop expired keys when there are this many keys
	effect   func(words []string) // gets what a server replicates; nil: nobody does
}

// leastSweep is how many keys are kept before the expired ones are looked for.
const leastSweep = 1024

// value is what a key holds.
type value struct {
	kind   commands.Kind
	cells  []cell           // of a hash
	set    []commands.Entry // of a sorted set: the newest first, of equals by member
	text   string           // of a string
	expire int64            // ms since the Unix epoch; 0: none
}

// cell is the fields of one cell of a hash: bit i of found says that field i is there.
type cell struct {
	found uint32
	value [commands.MaxFields]int64
}

// mu guards all servers: what runs handlers is one for the whole process.
var (
	mu      sync.Mutex
	running *Server // the server whose call runs
	record  commands.Call
)

// The room of the record. Nobody keeps a pointer into it, so one is enough for all calls.
func init() {
	record.Keys = make([]commands.Key, 0, commands.MaxClauses)
	record.Clauses = make([]commands.Clause, 0, commands.MaxClauses)
}

// NewServer returns a server without keys and policies.
func NewServer() *Server {
	return &Server{keys: map[string]*value{}, policies: new(commands.Policies), sweepAt: leastSweep}
}

// SetPolicies makes the policies in the text those of all calls from now on: see docs/commands.md.
func (s *Server) SetPolicies(text string) error {
	p, err := commands.ParsePolicies(text)
	if err != nil {
		return err
	}
	mu.Lock()
	defer mu.Unlock()
	s.policies = p
	return nil
}

// Delete deletes a key. It reports whether there was one.
func (s *Server) Delete(key string) bool {
	mu.Lock()
	defer mu.Unlock()
	_, found := s.keys[key]
	s.remove(key)
	return found
}

// Len returns how many keys there are at this time, without expired ones.
func (s *Server) Len(now funnel.Micros) int {
	mu.Lock()
	defer mu.Unlock()
	s.sweep(now)
	return len(s.keys)
}

// Error is the text of an error reply.
type Error string

func (e Error) Error() string { return string(e) }

// RedisError marks the type as an error reply for go-redis.
func (Error) RedisError() {}

// Do runs a command line at a time. The reply is an int64 or a []any of such replies, as go-redis has them; an error is of
// the type Error. Commands whose replies hold text are unknown here.
func (s *Server) Do(now funnel.Micros, words ...string) (any, error) {
	if len(words) == 0 {
		return nil, Error("ERR empty command")
	}
	row := find(words[0])
	if row == nil {
		return nil, Error("ERR unknown command '" + words[0] + "'")
	}
	if n := len(words); n < row.Least() || row.MaxArity > 0 && n > row.MaxArity {
		return nil, Error("ERR wrong number of arguments for '" + strings.ToLower(row.Name) + "' command")
	}
	mu.Lock()
	defer mu.Unlock()
	running, commands.TheHost = s, host{}
	commands.UsePolicies(s.policies)
	c := &record
	*c = commands.Call{Args: words[1:], Now: now, Keys: c.Keys[:0], Cells: c.Cells[:0], Clauses: c.Clauses[:0]}
	defer func() { c.Args = nil }()
	if code := s.run(row, c); code != commands.NoError {
		if c.ErrWord > 0 {
			return nil, Error(commands.AppendError(nil, code, c.Args[c.ErrWord-1]))
		}
		return nil, Error(code.Text())
	}
	return reply(c), nil
}

// find returns the row of a command, or nil if it is not one that replies numbers.
func find(name string) *commands.Command {
	for i := range commands.Table {
		if row := &commands.Table[i]; strings.EqualFold(row.Name, name) && row.State != commands.KindAny && !row.NoKey {
			return row
		}
	}
	return nil
}

func (s *Server) run(row *commands.Command, c *commands.Call) commands.ErrorCode {
	if row.Plan != nil {
		if code := row.FindKeys(c); code != commands.NoError {
			return code
		}
	} else {
		c.Keys = append(c.Keys, commands.Key{Wants: row.State})
		if row.State == commands.KindHash {
			c.Keys[0].Asked = 1
		}
	}
	for i := range c.Keys {
		s.load(c, &c.Keys[i])
	}
	if code := row.Run(c); code != commands.NoError {
		return code
	}
	if row.Writes() {
		for i := range c.Keys {
			s.apply(c, &c.Keys[i])
		}
	}
	return commands.NoError
}

// load tells the call what a key holds.
func (s *Server) load(c *commands.Call, k *commands.Key) {
	*k = commands.Key{Word: k.Word, Wants: k.Wants, Asked: k.Asked, Entries: k.Entries[:0], Kind: commands.KindAbsent,
		ExpiresAt: -1, FirstCell: int32(len(c.Cells))}
	v := s.alive(c.Args[k.Word], c.Now)
	if v != nil {
		k.Kind, k.Text = v.kind, v.text
		k.Length = int64(len(v.text) + len(v.set))
	}
	if k.Wants != commands.KindHash {
		return
	}
	n := int(k.Asked)
	if v != nil {
		n = max(n, len(v.cells))
	}
	for i := range n {
		loaded := commands.Cell{Index: int32(i)}
		if v != nil && i < len(v.cells) {
			loaded.Found, loaded.Value = v.cells[i].found, v.cells[i].value
			for found := loaded.Found; found != 0; found &= found - 1 {
				k.Length++
			}
		}
		c.Cells = append(c.Cells, loaded)
	}
	k.NumCells = int32(n)
}

// alive returns what a key holds, or nil. A key has expired when the time is past its expiry.
func (s *Server) alive(key string, now funnel.Micros) *value {
	v := s.keys[key]
	if v != nil && v.expired(now) {
		s.remove(key)
		return nil
	}
	return v
}

func (v *value) expired(now funnel.Micros) bool { return v.expire != 0 && int64(now)/1000 > v.expire }

// kinds says what a key holds that a handler changed.
var kinds = [...]commands.Kind{commands.Hash: commands.KindHash, commands.Zset: commands.KindZset, commands.String: commands.KindString}

// apply does to a key what the handler said, and tells the effects in the order in which the module replicates them.
func (s *Server) apply(c *commands.Call, k *commands.Key) {
	if k.Becomes == commands.Unchanged {
		return
	}
	name := strings.Clone(c.Args[k.Word])
	v := s.keys[name]
	if v != nil && v.kind != kinds[k.Becomes] {
		s.remove(name)
		v = nil
	}
	if k.Becomes == commands.Absent {
		return
	}
	if v == nil {
		v = &value{kind: kinds[k.Becomes]}
	}
	expires := k.ExpireFrom != 0 && (v.expire < k.ExpireFrom || v.expire > k.ExpireTo)
	if expires {
		v.expire = k.ExpireTo
	}
	switch k.Becomes {
	case commands.Hash:
		s.applyCells(name, v, c.Cells[k.FirstCell:][:k.Asked])
	case commands.Zset:
		s.applyEntries(name, v, c, k)
	case commands.String:
		v.text = string(k.NewText[:k.NewLen])
		s.tellString(name, v, expires)
	}
	if v.empty() {
		delete(s.keys, name)
		return
	}
	if expires && k.Becomes != commands.String {
		s.tellExpiry(name, v)
	}
	if len(s.keys) >= s.sweepAt {
		s.sweep(c.Now)
		s.sweepAt = max(2*len(s.keys), leastSweep)
	}
	s.keys[name] = v
}

// sweep drops the keys that have expired.
func (s *Server) sweep(now funnel.Micros) {
	for key, v := range s.keys {
		if v.expired(now) {
			s.remove(key)
		}
	}
}

func (s *Server) applyCells(name string, v *value, cells []commands.Cell) {
	s.tellCells(name, cells)
	for i := range cells {
		from := &cells[i]
		if len(v.cells) == i {
			v.cells = append(v.cells, cell{})
		}
		to := &v.cells[i]
		for f := range commands.MaxFields {
			switch bit := uint32(1) << f; {
			case from.Set&bit != 0:
				to.found, to.value[f] = to.found|bit, from.Value[f]
			case from.Unset&bit != 0:
				to.found, to.value[f] = to.found&^bit, 0
			}
		}
	}
	v.trimCells()
}

// trimCells drops the cells at the end that have no fields.
func (v *value) trimCells() {
	for len(v.cells) > 0 && v.cells[len(v.cells)-1].found == 0 {
		v.cells = v.cells[:len(v.cells)-1]
	}
}

func (s *Server) applyEntries(name string, v *value, c *commands.Call, k *commands.Key) {
	if k.AddPrefix != 0 {
		text := string(k.NewText[:k.NewLen])
		if k.AddWord != 0 {
			text = c.Args[k.AddWord]
		}
		e := commands.Entry{Time: k.AddTime, Member: string([]byte{byte(k.AddPrefix)}) + text}
		if !slices.Contains(v.set, e) { // a lease that is renewed at the same instant changes nothing
			v.drop(e.Member)
			v.add(e)
			s.tellAdded(name, e)
		}
	}
	s.tellDropped(name, k.Entries)
	for _, e := range k.Entries {
		if e.Drop != 0 {
			v.drop(e.Member)
		}
	}
}

func (v *value) add(e commands.Entry) {
	at, _ := slices.BinarySearchFunc(v.set, e, inOrder)
	v.set = slices.Insert(v.set, at, e)
}

func (v *value) drop(member string) {
	v.set = slices.DeleteFunc(v.set, func(e commands.Entry) bool { return e.Member == member })
}

// inOrder compares entries as the server orders them: the newest first, of equals by member.
func inOrder(a, b commands.Entry) int {
	switch {
	case a.Time > b.Time:
		return -1
	case a.Time < b.Time:
		return 1
	}
	return strings.Compare(a.Member, b.Member)
}

func (v *value) empty() bool {
	switch v.kind {
	case commands.KindHash:
		return !slices.ContainsFunc(v.cells, func(c cell) bool { return c.found != 0 })
	case commands.KindZset:
		return len(v.set) == 0
	}
	return false
}

func reply(c *commands.Call) any {
	if c.Shape == commands.Integer {
		return c.Reply[0]
	}
	items := integers(c.Reply[:c.Replies])
	if c.Shape == commands.Nested {
		for i := range c.Clauses {
			items = append(items, integers(c.Clauses[i].Reply[:c.Clauses[i].Replies]))
		}
	}
	return items
}

func integers(numbers []int64) []any {
	items := make([]any, len(numbers))
	for i, n := range numbers {
		items[i] = n
	}
	return items
}
