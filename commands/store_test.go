package commands

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// store is a keyspace in memory: it loads keys for handlers and applies what they
// want, as package cgo does with a server's.
type store struct {
	t    testing.TB
	now  int64 // µs
	keys map[string]*value
	call *Call // the running one
	zset *value
}

type value struct {
	kind   Kind
	text   string
	fields map[string]int64
	set    []Entry // by score
	expire int64   // ms
}

func newStore(t testing.TB) *store {
	s := &store{t: t, now: nowMicros, keys: map[string]*value{}}
	TheHost = s
	return s
}

// do runs a command line and returns its integers; a nested reply is flattened.
func (s *store) do(line string) ([]int64, Error) {
	words := strings.Fields(line)
	i := slices.IndexFunc(Table, func(c Command) bool { return c.Name == words[0] })
	if i < 0 {
		s.t.Fatalf("no command %s", words[0])
	}
	command := &Table[i]
	c := &Call{Args: words[1:], Now: s.now}
	names := words[1:2]
	if command.WordsPerKey > 0 {
		names = nil
		if n, _ := strconv.Atoi(words[1]); strconv.Itoa(n) == words[1] && n >= 1 && n <= 128 && len(words) >= 2+n*(1+command.WordsPerKey) {
			names = words[2 : 2+n]
		}
	}
	distinct := s.load(c, command, names)
	s.call = c
	if len(distinct) > 0 {
		s.zset = s.keys[distinct[0]]
	}
	err := command.Handler(c)
	if err != NoError {
		return nil, err
	}
	if command.Writes() {
		for k, name := range distinct {
			s.apply(c, int32(k), name)
		}
	}
	switch c.Shape {
	case Integer:
		return c.Reply[:1], NoError
	case Nested:
		reply := slices.Clone(c.Reply[:c.Replies])
		for _, cell := range c.Cells[:c.Asked] {
			reply = append(reply, cell.Reply[:]...)
		}
		return reply, NoError
	}
	return c.Reply[:c.Replies], NoError
}

func (s *store) load(c *Call, command *Command, names []string) (distinct []string) {
	for i, name := range names {
		k := slices.Index(distinct, name)
		if k < 0 {
			k = len(distinct)
			distinct = append(distinct, name)
			if v := s.keys[name]; v != nil && v.expire != 0 && v.expire < s.now/1000 {
				delete(s.keys, name)
			}
			key := Key{}
			if v := s.keys[name]; v != nil {
				key.Kind, key.Text, key.Length = v.kind, v.text, int64(len(v.fields)+len(v.set))
			}
			c.Keys = append(c.Keys, key)
		}
		if command.State == KindHash {
			index := 0
			for _, earlier := range names[:i] {
				if earlier == name {
					index++
				}
			}
			c.Cells = append(c.Cells, s.cell(name, k, index))
		}
	}
	c.Asked = int32(len(c.Cells))
	for k, name := range distinct {
		if v := s.keys[name]; v == nil || v.kind != KindHash {
			continue
		}
		for index := range 128 {
			if cell := s.cell(name, k, index); cell.Found != 0 && !slices.ContainsFunc(c.Cells, func(o Cell) bool { return o.Key == cell.Key && o.Index == cell.Index }) {
				c.Cells = append(c.Cells, cell)
			}
		}
	}
	return distinct
}

func fieldName(field, index int) string {
	return fmt.Sprint(MaxFields*index + field)
}

func (s *store) cell(name string, k, index int) Cell {
	cell := Cell{Key: int32(k), Index: int32(index)}
	v := s.keys[name]
	if v == nil {
		return cell
	}
	for i := range MaxFields {
		if n, ok := v.fields[fieldName(i, index)]; ok {
			cell.Found |= 1 << i
			cell.Value[i] = n
		}
	}
	return cell
}

func (s *store) apply(c *Call, k int32, name string) {
	key := &c.Keys[k]
	if key.Remove != 0 {
		delete(s.keys, name)
		if key.ExpireFrom == 0 {
			return
		}
	}
	v := s.keys[name]
	if v == nil {
		v = &value{kind: KindAbsent, fields: map[string]int64{}}
	}
	for _, cell := range c.Cells {
		if cell.Key != k {
			continue
		}
		for i := range MaxFields {
			if cell.Set>>i&1 != 0 {
				v.kind = KindHash
				v.fields[fieldName(i, int(cell.Index))] = cell.Value[i]
			}
			if cell.Unset>>i&1 != 0 {
				delete(v.fields, fieldName(i, int(cell.Index)))
			}
		}
	}
	switch {
	case c.AddPrefix != 0:
		text := string(c.Set[:c.SetLen])
		if c.AddArg > 0 {
			text = c.Args[c.AddArg]
		}
		v.kind = KindZset
		v.add(Entry{Time: c.AddTime, Member: string(rune(c.AddPrefix)) + text})
	case c.SetLen != 0:
		v.kind, v.text = KindString, string(c.Set[:c.SetLen])
	}
	for _, e := range c.Entries {
		if e.Drop != 0 {
			v.set = slices.DeleteFunc(v.set, func(o Entry) bool { return o.Member == e.Member })
		}
	}
	if v.kind == KindAbsent {
		return
	}
	if v.kind == KindZset && len(v.set) == 0 {
		delete(s.keys, name)
		return
	}
	if key.ExpireFrom != 0 && (v.expire < key.ExpireFrom || v.expire > key.ExpireTo) {
		v.expire = key.ExpireTo
	}
	if v.expire == 0 {
		s.t.Errorf("%s has no expiry", name)
	}
	s.keys[name] = v
}

func (v *value) add(e Entry) {
	v.set = slices.DeleteFunc(v.set, func(o Entry) bool { return o.Member == e.Member })
	i, _ := slices.BinarySearchFunc(v.set, e, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Member, b.Member))
	})
	v.set = slices.Insert(v.set, i, e)
}

// The Host: what a handler asks of the sorted set at the running call's first key.

func (s *store) First(c *Call, above int64, n int) bool {
	for _, e := range s.zset.set {
		if e.Time > above {
			if n--; n == 0 {
				c.Entries = append(c.Entries, e)
				return true
			}
		}
	}
	return false
}

func (s *store) Last(c *Call, n int) bool {
	if n > len(s.zset.set) {
		return false
	}
	c.Entries = append(c.Entries, s.zset.set[len(s.zset.set)-n])
	return true
}

func (s *store) Head(c *Call, above, upTo int64, most int) {
	for _, e := range s.zset.set {
		if e.Time > above && e.Time <= upTo && most > 0 {
			most--
			c.Entries = append(c.Entries, e)
		}
	}
}

func (s *store) Find(c *Call, prefix byte, id string) bool {
	for _, e := range s.zset.set {
		if e.Member == string(rune(prefix))+id {
			c.Entries = append(c.Entries, e)
			return true
		}
	}
	return false
}

func (s *store) Count(c *Call, upTo int64) (n int64) {
	for _, e := range s.zset.set {
		if e.Time <= upTo {
			n++
		}
	}
	return n
}

func (s *store) Release(c *Call, keep int) { c.Entries = c.Entries[:keep] }
