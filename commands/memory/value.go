package memory

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"gothrottle/commands"
	"gothrottle/funnel"
)

// Value is what a key holds.
type Value struct {
	Kind   commands.Kind
	Text   string   // of a string
	Fields []Field  // of a hash, in the order of their names
	Set    []Member // of a sorted set, in the server's order
	Expire int64    // ms since the Unix epoch; 0: none
}

// Field is one field of a hash.
type Field struct{ Name, Text string }

// Member is one member of a sorted set.
type Member struct {
	Score float64
	Text  string
}

// Clone returns a copy; nil of nil.
func (v *Value) Clone() *Value {
	if v == nil {
		return nil
	}
	c := *v
	c.Fields, c.Set = slices.Clone(v.Fields), slices.Clone(v.Set)
	return &c
}

// Expired reports whether a key is gone at a time: when the time is past its expiry.
func (v *Value) Expired(now funnel.Micros) bool {
	return v.Expire != 0 && int64(now)/1000 > v.Expire
}

// Empty reports whether the value is a hash or a sorted set without elements, which no server keeps.
func (v *Value) Empty() bool {
	return v.Kind == commands.KindHash && len(v.Fields) == 0 || v.Kind == commands.KindZset && len(v.Set) == 0
}

// names are the fields of the cells: the number 4*cell + field, and 128 + cell for a lockout, which is the last field.
var names = func() (names [commands.MaxCells][commands.MaxFields]string) {
	for cell := range names {
		for field := range commands.MaxFields - 1 {
			names[cell][field] = strconv.Itoa(4*cell + field)
		}
		names[cell][commands.MaxFields-1] = strconv.Itoa(128 + cell)
	}
	return names
}()

// find returns where a field is in Fields, or belongs.
func (v *Value) find(name string) (i int, found bool) {
	return slices.BinarySearchFunc(v.Fields, name, func(f Field, name string) int { return strings.Compare(f.Name, name) })
}

// Field returns the text of a field.
func (v *Value) Field(name string) (text string, found bool) {
	i, found := v.find(name)
	if found {
		text = v.Fields[i].Text
	}
	return text, found
}

// SetField sets a field.
func (v *Value) SetField(name, text string) {
	i, found := v.find(name)
	if !found {
		v.Fields = slices.Insert(v.Fields, i, Field{Name: name})
	}
	v.Fields[i].Text = text
}

// DropField removes a field, which need not be there.
func (v *Value) DropField(name string) {
	v.Fields = slices.DeleteFunc(v.Fields, func(f Field) bool { return f.Name == name })
}

// Add adds a member, or changes its score.
func (v *Value) Add(m Member) {
	v.Drop(m.Text)
	at, _ := slices.BinarySearchFunc(v.Set, m, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.Score, b.Score), cmp.Compare(a.Text, b.Text))
	})
	v.Set = slices.Insert(v.Set, at, m)
}

// Drop removes a member. It reports whether the member was there.
func (v *Value) Drop(text string) bool {
	n := len(v.Set)
	v.Set = slices.DeleteFunc(v.Set, func(m Member) bool { return m.Text == text })
	return len(v.Set) < n
}

// cell returns the fields of a cell, as the host promises them: see commands.Cell.
func (v *Value) cell(index int) commands.Cell {
	cell := commands.Cell{Index: int32(index)}
	if v == nil {
		return cell
	}
	for i := range cell.Value {
		text, found := v.Field(names[index][i])
		if !found {
			continue
		}
		cell.Found |= 1 << i
		n, err := strconv.ParseInt(text, 10, 64)
		if cell.Value[i] = n; err != nil || strconv.FormatInt(n, 10) != text {
			cell.Bad |= 1 << i
		}
	}
	return cell
}

// entry returns a member as handlers see it. A score that isn't a number of microseconds or slots is bad.
func (m Member) entry() commands.Entry {
	if time := -m.Score; math.Abs(time) <= 1<<53 && time == math.Floor(time) {
		return commands.Entry{Time: funnel.Micros(time), Member: m.Text}
	}
	return commands.Entry{Member: m.Text, Bad: 1}
}
