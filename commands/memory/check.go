package memory

import (
	"fmt"

	"gothrottle/commands"
)

// Check makes the server hold every handler to its contract: see commands.Call. It reports what breaks the contract.
// rubbish fills the room of a new call with what no handler may read.
func (s *Server) Check(report func(format string, args ...any), rubbish func(*commands.Call)) {
	mu.Lock()
	defer mu.Unlock()
	s.complaint, s.rubbish = report, rubbish
}

func (s *Server) complain(format string, args ...any) {
	if s.complaint != nil {
		s.complaint(format, args...)
	}
}

// poison puts rubbish where the contract promises nothing: into the values of fields that are absent or bad.
func (s *Server) poison(cell *commands.Cell) {
	for i := range cell.Value {
		if s.complaint != nil && (cell.Found&^cell.Bad)>>i&1 == 0 {
			cell.Value[i] = -77
		}
	}
}

// checkPlan makes sure that a Plan alone names the keys, each once.
func (s *Server) checkPlan(row *commands.Command, c *commands.Call) {
	if s.complaint == nil {
		return
	}
	named := map[string]bool{}
	for i, k := range c.Keys {
		hash := k.Wants == commands.KindHash
		if (i == 0) != (k.Word == 0) || k.Wants == commands.KindAbsent || hash != (k.Asked > 0) || k.Asked > commands.MaxCells || named[c.Args[k.Word]] {
			s.complain("%s %q: key %d: %+v", row.Name, c.Args, i, k)
		}
		named[c.Args[k.Word]] = true
	}
	if len(named) == 0 {
		s.complain("%s %q: no key", row.Name, c.Args)
	}
}

// snapshot writes what a handler must leave as it is.
func (s *Server) snapshot(c *commands.Call) string {
	if s.complaint == nil {
		return ""
	}
	b := fmt.Sprintf("%q %d %d keys %d cells %d clauses", c.Args, c.Now, len(c.Keys), len(c.Cells), len(c.Clauses))
	for _, k := range c.Keys {
		b += fmt.Sprint("; ", k.Word, k.Wants, k.Asked, k.Kind, k.Length, k.ExpiresAt, k.Text, k.FirstCell, k.NumCells)
	}
	for _, cell := range c.Cells {
		b += fmt.Sprint("; ", cell.Index, cell.Found, cell.Bad)
	}
	return b
}

// checkCall makes sure that a handler left what is the host's, and set a reply of its form.
func (s *Server) checkCall(row *commands.Command, c *commands.Call, before string, code commands.ErrorCode) {
	if s.complaint == nil {
		return
	}
	if after := s.snapshot(c); after != before {
		s.complain("%q: the handler changed what is the host's:\n%s\n%s", c.Args, before, after)
	}
	ok := c.Replies >= 1 && int(c.Replies) <= len(c.Reply)
	switch c.Shape {
	case commands.Integer:
		ok = c.Replies == 0
	case commands.Nested:
		ok = ok && len(c.Clauses) > 0
		for _, clause := range c.Clauses {
			ok = ok && clause.Replies >= 5 && int(clause.Replies) <= len(clause.Reply)
		}
	case commands.Items:
		ok = c.Replies == 0 && (code != commands.NoError || oneItem())
	}
	if code == commands.NoError && (!ok || c.Named()) {
		s.complain("%s %q: no reply: %+v", row.Name, c.Args, c)
	}
}

// oneItem reports whether the items are one item, with the items inside it.
func oneItem() (ok bool) {
	defer func() { ok = recover() == nil && ok }()
	_, rest := itemOf(items)
	return len(rest) == 0
}

// checkKey makes sure that a handler set what belongs to Becomes, and nothing else.
func (s *Server) checkKey(c *commands.Call, k *commands.Key) {
	if s.complaint == nil {
		return
	}
	drops, sets := 0, 0
	for _, e := range k.Entries {
		drops += int(e.Drop)
	}
	for _, cell := range c.Cells[k.FirstCell:][:k.NumCells] {
		if cell.Set|cell.Unset != 0 {
			sets++
			if cell.Index >= k.Asked || (cell.Set|cell.Unset)>>commands.MaxFields != 0 || cell.Set&cell.Unset != 0 {
				s.complain("%q: cell %d has Set %b, Unset %b", c.Args, cell.Index, cell.Set, cell.Unset)
			}
		}
	}
	adds, expires := k.AddPrefix > 0, k.ExpireTo > 0
	ok := true
	switch k.Becomes {
	case commands.Unchanged:
		ok = sets+drops == 0 && !adds && k.NewLen == 0 && !expires
	case commands.Absent:
		ok = drops == 0 && !adds && k.NewLen == 0 && !expires
	case commands.Hash: // perhaps for its expiry alone
		ok = drops == 0 && !adds && k.NewLen == 0 && expires
	case commands.Zset:
		word := k.AddWord == 0 || int(k.AddWord) < len(c.Args) && k.NewLen == 0
		ok = sets == 0 && (drops > 0 || adds) && (!adds || expires) && word
	case commands.String:
		ok = sets+drops == 0 && !adds && k.NewLen > 0 && expires
	}
	if !ok || k.NewLen < 0 || int(k.NewLen) > len(k.NewText) || k.ExpireFrom > k.ExpireTo || k.ExpireFrom < 0 {
		s.complain("%q: the key becomes %d with %+v and %d drops, %d cells set", c.Args, k.Becomes, *k, drops, sets)
	}
}
