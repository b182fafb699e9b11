package memory

import (
	"strconv"
	"strings"

	"gothrottle/commands"
)

// apply does to a key what the handler said.
func (s *Server) apply(c *commands.Call, k *commands.Key) {
	if k.Becomes == commands.Unchanged {
		return
	}
	name, kind := c.Args[k.Word], commands.Kind(k.Becomes-1) // as Becomes is numbered
	v := s.keys[name]
	if v != nil && v.Kind != kind {
		s.remove(name)
		v = nil
	}
	if k.Becomes == commands.Absent {
		return
	}
	var before *Value
	var dropped []string
	if v == nil {
		v = &Value{Kind: kind}
		name = strings.Clone(name)
		s.keys[name] = v
	} else if s.observe != nil {
		before = v.Clone()
	}
	switch k.Becomes {
	case commands.Hash:
		v.setCells(c.Cells[k.FirstCell:][:k.Asked])
	case commands.Zset:
		dropped = v.setEntries(c, k)
	case commands.String:
		v.Text = string(k.NewText[:k.NewLen])
	}
	if k.ExpireFrom != 0 && (v.Expire < k.ExpireFrom || v.Expire > k.ExpireTo) {
		v.Expire = k.ExpireTo
	}
	if s.observe != nil {
		s.observe(name, before, v, dropped)
	}
	if v.Empty() {
		delete(s.keys, name)
	}
}

func (v *Value) setCells(cells []commands.Cell) {
	for i := range cells {
		cell := &cells[i]
		for f := range commands.MaxFields {
			switch bit := uint32(1) << f; {
			case cell.Set&bit != 0:
				v.SetField(names[i][f], strconv.FormatInt(cell.Value[f], 10))
			case cell.Unset&bit != 0:
				v.DropField(names[i][f])
			}
		}
	}
}

// setEntries adds a member, then removes others, which it returns.
func (v *Value) setEntries(c *commands.Call, k *commands.Key) (dropped []string) {
	if k.AddPrefix != 0 {
		text := string(k.NewText[:k.NewLen])
		if k.AddWord != 0 {
			text = c.Args[k.AddWord]
		}
		v.Add(Member{-float64(k.AddTime), string([]byte{byte(k.AddPrefix)}) + text})
	}
	for _, e := range k.Entries {
		if e.Drop != 0 {
			dropped = append(dropped, e.Member)
			v.Drop(e.Member)
		}
	}
	return dropped
}
