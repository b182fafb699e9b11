package commands_test

import (
	"fmt"
	"testing"

	"gothrottle/commands"
)

// No reply shows it: a handler keeps the contract that is the comment on commands.Call. contract checks that at each call of
// a server: see memory.Server.Handle.
type contract struct {
	t    *testing.T
	room *commands.Call // of the last call; the server uses it again
}

// run runs a handler and checks what it leaves.
func (k *contract) run(e *commands.Engine, row *commands.Command, c *commands.Call) commands.ErrorCode {
	k.room = c
	k.checkPlan(row, c)
	for i := range c.Cells { // the values of fields that are absent or bad may be anything
		for f := range commands.MaxFields {
			if cell := &c.Cells[i]; (cell.Found&^cell.Bad)>>f&1 == 0 {
				cell.Value[f] = -77
			}
		}
	}
	before := hostsPart(c)
	code := e.Run(row, c)
	if after := hostsPart(c); after != before {
		k.t.Errorf("%q: the handler changed what is the host's:\n%s\n%s", c.Args, before, after)
	}
	if code != commands.NoError {
		return code
	}
	if !replies(c) || c.Named() {
		k.t.Errorf("%s %q: no reply: %+v", row.Name, c.Args, c)
	}
	for i := range c.Keys {
		k.checkKey(c, &c.Keys[i])
	}
	return code
}

// checkPlan makes sure that a Plan alone names the keys, each once.
func (k *contract) checkPlan(row *commands.Command, c *commands.Call) {
	if row.Plan == nil {
		return
	}
	named := map[string]bool{}
	for i, key := range c.Keys {
		hash, name := key.Wants == commands.KindHash, c.Args[key.Word]
		if (i == 0) != (key.Word == 0) || key.Wants == commands.KindAbsent || hash != (key.Asked > 0) || key.Asked > commands.MaxCells || named[name] {
			k.t.Errorf("%s %q: key %d: %+v", row.Name, c.Args, i, key)
		}
		named[name] = true
	}
	if len(named) == 0 {
		k.t.Errorf("%s %q: no key", row.Name, c.Args)
	}
}

// hostsPart writes what a handler must leave as it is.
func hostsPart(c *commands.Call) string {
	b := fmt.Sprintf("%q %d %d keys %d cells %d clauses", c.Args, c.Now, len(c.Keys), len(c.Cells), len(c.Clauses))
	for _, k := range c.Keys {
		b += fmt.Sprint("; ", k.Word, k.Wants, k.Asked, k.Kind, k.Length, k.ExpiresAt, k.Text, k.FirstCell, k.NumCells)
	}
	for _, cell := range c.Cells {
		b += fmt.Sprint("; ", cell.Index, cell.Found, cell.Bad)
	}
	return b
}

// replies reports whether a handler set a reply of its form.
func replies(c *commands.Call) bool {
	ok := c.Replies >= 1 && int(c.Replies) <= len(c.Reply)
	switch c.Shape {
	case commands.Integer, commands.Items:
		return c.Replies == 0
	case commands.Nested:
		ok = ok && len(c.Clauses) > 0
		for _, clause := range c.Clauses {
			ok = ok && clause.Replies >= 5 && int(clause.Replies) <= len(clause.Reply)
		}
	}
	return ok
}

// checkKey makes sure that a handler set what belongs to Becomes, and nothing else.
func (k *contract) checkKey(c *commands.Call, key *commands.Key) {
	drops, sets := map[string]bool{}, 0
	for _, e := range key.Entries {
		if e.Drop != 0 && drops[e.Member] {
			k.t.Errorf("%q: %q is dropped twice", c.Args, e.Member)
		}
		if e.Drop != 0 {
			drops[e.Member] = true
		}
	}
	for _, cell := range c.Cells[key.FirstCell:][:key.NumCells] {
		if cell.Set|cell.Unset != 0 {
			sets++
			if cell.Index >= key.Asked || (cell.Set|cell.Unset)>>commands.MaxFields != 0 || cell.Set&cell.Unset != 0 {
				k.t.Errorf("%q: cell %d has Set %b, Unset %b", c.Args, cell.Index, cell.Set, cell.Unset)
			}
		}
	}
	adds, expires := key.AddPrefix > 0, key.ExpireTo > 0
	ok := true
	switch key.Becomes {
	case commands.Unchanged:
		ok = sets+len(drops) == 0 && !adds && key.NewLen == 0 && !expires
	case commands.Absent:
		ok = len(drops) == 0 && !adds && key.NewLen == 0 && !expires
	case commands.Hash: // perhaps for its expiry alone
		ok = len(drops) == 0 && !adds && key.NewLen == 0 && expires
	case commands.Zset:
		word := key.AddWord == 0 || int(key.AddWord) < len(c.Args) && key.NewLen == 0
		ok = sets == 0 && (len(drops) > 0 || adds) && (!adds || expires) && word
	case commands.String:
		ok = sets+len(drops) == 0 && !adds && key.NewLen > 0 && expires
	}
	if !ok || key.NewLen < 0 || int(key.NewLen) > len(key.NewText) || key.ExpireFrom > key.ExpireTo || key.ExpireFrom < 0 {
		k.t.Errorf("%q: the key becomes %d with %+v and %d drops, %d cells set", c.Args, key.Becomes, *key, len(drops), sets)
	}
}
