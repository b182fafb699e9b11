package commands

import (
	"fmt"
	"slices"
)

// By this file the store checks that handlers keep the contract of [Call].

// checkPlan makes sure that a Plan alone names the keys, each once.
func (s *store) checkPlan(command *Command, c *Call) {
	s.t.Helper()
	if len(c.Keys) == 0 || c.Keys[0].Word != 0 {
		s.t.Errorf("%s %q: the first word must be the first key", command.Name, c.Args)
	}
	for i, k := range c.Keys {
		if k.Wants == KindAbsent || (k.Wants == KindHash) != (k.Asked > 0) || k.Asked > MaxCells {
			s.t.Errorf("%s %q: key %d wants %d with %d cells", command.Name, c.Args, i, k.Wants, k.Asked)
		}
		for _, other := range c.Keys[:i] {
			if c.Args[other.Word] == c.Args[k.Word] {
				s.t.Errorf("%s %q: key %d is named twice", command.Name, c.Args, i)
			}
		}
	}
}

// checkReply makes sure that a handler set a reply of its form.
func (s *store) checkReply(command *Command, c *Call) {
	s.t.Helper()
	bad := c.ErrWord != 0
	switch c.Shape {
	case Integer:
		bad = bad || c.Replies != 0
	case Integers:
		bad = bad || c.Replies < 1 || int(c.Replies) > len(c.Reply)
	case Nested:
		bad = bad || c.Replies < 1 || int(c.Replies) > len(c.Reply) || len(c.Clauses) == 0
		for _, clause := range c.Clauses {
			bad = bad || clause.Replies < 5 || int(clause.Replies) > len(clause.Reply)
		}
	case Items:
		bad = bad || c.Replies != 0 || !oneItem(s.items)
	default:
		bad = true
	}
	if bad {
		s.t.Errorf("%s %q: no reply: %+v", command.Name, c.Args, c)
	}
}

// oneItem reports whether the items are one item, with the items inside it.
func oneItem(items []item) bool {
	open := int64(1) // how many items must still come
	for _, it := range items {
		if open == 0 {
			return false
		}
		open--
		switch it.kind {
		case ItemArray:
			open += it.n
		case ItemMap:
			open += 2 * it.n
		}
	}
	return open == 0
}

// check makes sure that a handler set what belongs to Becomes, and nothing else.
func (s *store) check(c *Call, k *Key) {
	s.t.Helper()
	drops, sets := 0, 0
	for _, e := range k.Entries {
		drops += int(e.Drop)
	}
	for _, cell := range c.cells(k) {
		if cell.Set|cell.Unset != 0 {
			sets++
			if cell.Index >= k.Asked || (cell.Set|cell.Unset)>>MaxFields != 0 || cell.Set&cell.Unset != 0 {
				s.t.Errorf("%q: cell %d has Set %b, Unset %b", c.Args, cell.Index, cell.Set, cell.Unset)
			}
		}
	}
	ok := true
	switch k.Becomes {
	case Unchanged:
		ok = drops == 0 && sets == 0 && k.AddPrefix == 0 && k.NewLen == 0 && k.ExpireTo == 0
	case Absent:
		ok = drops == 0 && k.AddPrefix == 0 && k.NewLen == 0 && k.ExpireTo == 0
	case Hash: // perhaps for its expiry alone
		ok = drops == 0 && k.AddPrefix == 0 && k.NewLen == 0 && k.ExpireTo > 0
	case Zset:
		ok = sets == 0 && (drops > 0 || k.AddPrefix > 0) && (k.AddPrefix == 0 || k.ExpireTo > 0) &&
			(k.AddWord == 0 || int(k.AddWord) < len(c.Args) && k.NewLen == 0)
	case String:
		ok = sets == 0 && drops == 0 && k.AddPrefix == 0 && k.NewLen > 0 && k.ExpireTo > 0
	}
	if !ok || k.NewLen < 0 || int(k.NewLen) > len(k.NewText) || k.ExpireFrom > k.ExpireTo || k.ExpireFrom < 0 {
		s.t.Errorf("%q: the key becomes %d with %+v and %d drops, %d cells set", c.Args, k.Becomes, *k, drops, sets)
	}
}

// poisonedKey has rubbish in every field.
var poisonedKey = Key{
	Word: -77, Wants: -77, Asked: -77, Kind: -77, Length: -77, Text: "rubbish", ExpiresAt: -77, FirstCell: -77, NumCells: -77,
	Becomes: -77, NewLen: -77, AddPrefix: -77, AddWord: -77, AddTime: -77, ExpireFrom: -77, ExpireTo: -77,
	slackBase: -77, NewText: [48]byte{0: 0xa5, 17: 0xa5, 33: 0xa5, 47: 0xa5},
}

// poisonedClause has rubbish in every field.
var poisonedClause = Clause{Key: -77, Replies: -77, Reply: [6]int64{-77, -77, -77, -77, -77, -77}, limit: -77, quantity: -77, cell: -77,
	clauseWords: clauseWords{kind: -77, opts: 0xff, first: -77, quantityWord: -77, operand: -77}}

// poisonedCall returns a call without keys, cells and clauses. The room for these holds rubbish.
// In every second call the room for clauses holds what the call before left there.
func (s *store) poisonedCall(words []string) *Call {
	c := &Call{Args: words, Now: s.now}
	c.Keys = slices.Repeat([]Key{poisonedKey}, MaxClauses)[:0]
	c.Cells = slices.Repeat([]Cell{{Index: -77, Found: 0xff, Bad: 0xff, Set: 0xff, Unset: 0xff}}, MaxCells)[:0]
	if s.calls++; s.calls%2 == 0 {
		c.Clauses = s.clauses[:0]
		return c
	}
	s.clauses = slices.Repeat([]Clause{poisonedClause}, MaxClauses)
	c.Clauses = s.clauses[:0]
	return c
}

// snapshot writes what a handler must leave as it is.
func snapshot(c *Call) string {
	b := fmt.Sprintf("%q %d %d keys %d cells %d clauses", c.Args, c.Now, len(c.Keys), len(c.Cells), len(c.Clauses))
	for _, k := range c.Keys {
		b += fmt.Sprintf("; %d %d %d %d %d %d %q %d %d", k.Word, k.Wants, k.Asked, k.Kind, k.Length, k.ExpiresAt, k.Text, k.FirstCell, k.NumCells)
	}
	for _, cell := range c.Cells {
		b += fmt.Sprintf("; %d %b %b", cell.Index, cell.Found, cell.Bad)
	}
	return b
}
