package memory

import (
	"slices"
	"strconv"
	"strings"

	"gothrottle/commands"
	"gothrottle/funnel"
)

// apply does to a key what the handler said.
func (s *Server) apply(c *commands.Call, k *commands.Key) {
	if k.Becomes == commands.Unchanged {
		return
	}
	sh, name, kind := s.at(c.Args[k.Word]), c.Args[k.Word], commands.Kind(k.Becomes-1) // as Becomes is numbered
	v := sh.keys[name]
	if v != nil && v.Kind != kind {
		sh.remove(name)
		v = nil
	}
	if k.Becomes == commands.Absent {
		return
	}
	if v == nil {
		v = &Value{Kind: kind}
		name = strings.Clone(name)
		sh.keys[name] = v
	}
	expires := k.ExpireFrom != 0 && (v.Expire < k.ExpireFrom || v.Expire > k.ExpireTo)
	if expires {
		v.Expire = k.ExpireTo
	}
	switch k.Becomes {
	case commands.Hash:
		set, unset := v.setCells(c.Cells[k.FirstCell:][:k.Asked])
		s.replicate("HSET", name, set...)
		s.replicate("HDEL", name, unset...)
	case commands.Zset:
		added, dropped := v.setEntries(c, k)
		s.replicate("ZADD", name, added...)
		s.replicate("ZREM", name, dropped...)
	case commands.String:
		if v.Text = string(k.NewText[:k.NewLen]); expires {
			s.replicate("SET", name, v.Text, "PXAT", strconv.FormatInt(v.Expire, 10))
		} else {
			s.replicate("SET", name, v.Text, "KEEPTTL")
		}
		return
	}
	switch {
	case v.Empty():
		delete(sh.keys, name)
	case expires:
		s.replicate("PEXPIREAT", name, strconv.FormatInt(v.Expire, 10))
	}
}

// replicate reports a command that a server with the module replicates, unless there are no words for it.
func (s *Server) replicate(command, key string, words ...string) {
	if s.observe != nil && len(words) > 0 {
		s.observe(append([]string{command, key}, words...))
	}
}

// setCells sets and removes fields. It returns those that it set, with their values, and those that it removed.
func (v *Value) setCells(cells []commands.Cell) (set, unset []string) {
	for i := range cells {
		cell := &cells[i]
		for f := range commands.MaxFields {
			name := names[i][f]
			switch bit := uint32(1) << f; {
			case cell.Set&bit != 0:
				text := strconv.FormatInt(cell.Value[f], 10)
				v.SetField(name, text)
				set = append(set, name, text)
			case cell.Unset&bit != 0:
				v.DropField(name)
				unset = append(unset, name)
			}
		}
	}
	return set, unset
}

// setEntries adds members, then removes others. It returns the members that it added, each after its score, and those that it
// removed. A member that is there already, with its score, isn't added.
func (v *Value) setEntries(c *commands.Call, k *commands.Key) (added, dropped []string) {
	add := func(time funnel.Micros, text string) {
		if m := (Member{0 - float64(time), text}); !slices.Contains(v.Set, m) {
			v.Add(m)
			added = append(added, strconv.FormatFloat(m.Score, 'f', -1, 64), m.Text)
		}
	}
	if k.AddPrefix != 0 {
		text := string(k.NewText[:k.NewLen])
		if k.AddWord != 0 {
			text = c.Args[k.AddWord]
		}
		add(k.AddTime, string([]byte{byte(k.AddPrefix)})+text)
	}
	for _, e := range k.Entries {
		switch e.Drop {
		case 1:
			dropped = append(dropped, e.Member)
			v.Drop(e.Member)
		case 2:
			add(e.Time, e.Member)
		}
	}
	return added, dropped
}
