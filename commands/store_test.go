package commands

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gothrottle/funnel"
)

// nowMicros is the time of the tests: 2027-01-15 08:00 UTC.
const nowMicros = 1_800_000_000_000_000

// store is a keyspace in memory. It runs handlers as package cgo does, and it fails the test
// if a handler breaks the contract of [Call]. What the contract does not promise holds rubbish.
type store struct {
	t    testing.TB
	now  funnel.Micros
	keys map[string]*value
	call *Call // the last one

	calls   int
	clauses []Clause // see poisonedCall
	items   []item   // what the last call gave to Reply
}

// item is one part of a reply of the shape Items.
type item struct {
	kind ItemKind
	n    int64
	text string
}

// value is what a key holds.
type value struct {
	kind   Kind
	text   string
	fields map[string]string
	set    []Entry // in the server's order: the newest first
	expire int64   // ms since the Unix epoch; 0: none
}

const samplePolicies = "sample THROTTLE 15 30 108000s, THROTTLE 1 1 3600s;"

// newStore returns an empty store. The policies are those of the samples.
func newStore(t testing.TB) *store {
	t.Helper()
	s := &store{t: t, now: nowMicros, keys: map[string]*value{}}
	TheHost = s
	CountDenials(1000)
	s.setPolicies(samplePolicies)
	return s
}

func (s *store) setPolicies(text string) {
	s.t.Helper()
	p, err := ParsePolicies(text)
	if err != nil {
		s.t.Fatalf("%q: %v", text, err)
	}
	UsePolicies(p)
}

func findCommand(name string) *Command {
	for i := range Table {
		if strings.EqualFold(Table[i].Name, name) {
			return &Table[i]
		}
	}
	return nil
}

// do runs a command line and returns the integers of its reply, without those of clauses.
func (s *store) do(line string) ([]int64, ErrorCode) {
	s.t.Helper()
	c, err := s.run(strings.Fields(line)...)
	switch {
	case err != NoError:
		return nil, err
	case c.Shape == Integer:
		return c.Reply[:1], NoError
	}
	return c.Reply[:c.Replies], NoError
}

// must is do for a line that is no error.
func (s *store) must(line string) []int64 {
	s.t.Helper()
	reply, err := s.do(line)
	if err != NoError {
		s.t.Fatalf("%s: %s", line, err.Text())
	}
	return reply
}

// told runs a command line and returns its whole reply, or the text of its error.
func (s *store) told(line string) string {
	s.t.Helper()
	c, err := s.run(strings.Fields(line)...)
	if err == NoError && c.Shape == Items {
		text, _ := itemsText(s.items)
		return text
	}
	return replyText(c, err)
}

// toldRow is a command line and its whole reply on new keys.
type toldRow struct{ line, want string }

// wantTold runs each line on a store of its own.
func wantTold(t *testing.T, rows []toldRow) {
	t.Helper()
	for _, row := range rows {
		if got := newStore(t).told(row.line); got != row.want {
			t.Errorf("%q: %q, want %q", row.line, got, row.want)
		}
	}
}

// itemsText writes the first item, with the items inside it, and returns the items after it. Maps
// are written as arrays.
func itemsText(items []item) (string, []item) {
	first, rest := items[0], items[1:]
	switch first.kind {
	case ItemInteger:
		return fmt.Sprint(first.n), rest
	case ItemText:
		return first.text, rest
	case ItemNull:
		return "(nil)", rest
	case ItemMap:
		first.n *= 2
	}
	parts := make([]string, first.n)
	for i := range parts {
		parts[i], rest = itemsText(rest)
	}
	return "[" + strings.Join(parts, " ") + "]", rest
}

// replyText writes a reply with brackets and blanks, as [Sample] has it.
func replyText(c *Call, err ErrorCode) string {
	switch {
	case err != NoError && c.ErrWord > 0:
		return string(AppendError(nil, err, c.Args[c.ErrWord-1]))
	case err != NoError:
		return err.Text()
	case c.Shape == Integer:
		return fmt.Sprint(c.Reply[0])
	}
	parts := []string{}
	for _, n := range c.Reply[:c.Replies] {
		parts = append(parts, fmt.Sprint(n))
	}
	if c.Shape == Nested {
		for _, clause := range c.Clauses {
			parts = append(parts, fmt.Sprint(clause.Reply[:clause.Replies]))
		}
	}
	return "[" + strings.Join(parts, " ") + "]"
}

// run runs one call, and applies what the handler wants.
func (s *store) run(words ...string) (*Call, ErrorCode) {
	s.t.Helper()
	command := findCommand(words[0])
	if command == nil {
		s.t.Fatalf("no command %s", words[0])
	}
	c := s.poisonedCall(words[1:])
	s.call, s.items = c, nil
	if n := len(words); n < command.Least() || command.MaxArity > 0 && n > command.MaxArity {
		c.Keys = nil
		return c, ErrArity
	}
	if command.Plan != nil {
		if err := command.Plan(c); err != NoError {
			c.Keys, c.Clauses = nil, nil
			return c, err
		}
		s.checkPlan(command, c)
	} else if !command.NoKey {
		key := poisonedKey
		key.Word, key.Wants, key.Asked = 0, command.State, 0
		if command.State == KindHash || command.State == KindAny {
			key.Asked = 1
		}
		c.Keys = append(c.Keys, key)
	}
	for k := range c.Keys {
		s.load(c, &c.Keys[k])
	}
	before := snapshot(c)
	err := command.Run(c)
	if after := snapshot(c); after != before {
		s.t.Errorf("%q: the handler changed what is the host's:\n%s\n%s", words, before, after)
	}
	if err != NoError {
		return c, err
	}
	s.checkReply(command, c)
	for k := range c.Keys {
		s.check(c, &c.Keys[k])
		if command.Writes() {
			s.apply(c, &c.Keys[k])
		}
	}
	return c, NoError
}

// load fills in what the host promises of one key.
func (s *store) load(c *Call, k *Key) {
	name := c.Args[k.Word]
	s.expireKeys()
	*k = Key{Word: k.Word, Wants: k.Wants, Asked: k.Asked, FirstCell: int32(len(c.Cells)), NewText: poisonedKey.NewText}
	k.Entries = slices.Repeat([]Entry{{Time: -77, Member: "rubbish", Bad: -77, Drop: -77}}, 2)[:0]
	v := s.keys[name]
	if v != nil {
		k.Kind, k.Length = v.kind, int64(len(v.text)+len(v.fields)+len(v.set))
		if (k.Wants == KindString || k.Wants == KindAny) && k.Length >= MinQuotaLen && k.Length <= MaxQuotaLen ||
			(k.Wants == KindHash || k.Wants == KindAny) && k.Length == AdoptedLen {
			k.Text = v.text
		}
	}
	k.ExpiresAt = -1
	if k.Wants == KindAny && v != nil && v.expire != 0 {
		k.ExpiresAt = v.expire
	}
	if k.Wants != KindHash && (k.Wants != KindAny || k.Kind != KindHash) {
		return
	}
	for index := int32(0); index < MaxCells; index++ {
		cell := v.cell(index)
		if index >= k.Asked && cell.Found == 0 {
			break
		}
		c.Cells = append(c.Cells, cell)
		k.NumCells++
	}
}

// cell loads a cell. Fields that are absent or bad have rubbish for a value.
func (v *value) cell(index int32) Cell {
	cell := Cell{Index: index}
	for i := range cell.Value {
		cell.Value[i] = -77
		text, ok := "", false
		if v != nil {
			text, ok = v.fields[fieldName(i, int(index))]
		}
		if !ok {
			continue
		}
		cell.Found |= 1 << i
		if n, err := strconv.ParseInt(text, 10, 64); err != nil {
			cell.Bad |= 1 << i
		} else {
			cell.Value[i] = n
		}
	}
	return cell
}

func fieldName(field, index int) string {
	if field == fieldLocked {
		return fmt.Sprint(128 + index)
	}
	return fmt.Sprint(4*index + field)
}

// apply does what a handler wants of one key, in the host's order.
func (s *store) apply(c *Call, k *Key) {
	s.t.Helper()
	name := c.Args[k.Word]
	v := s.keys[name]
	kind := [...]Kind{Absent: KindAbsent, Hash: KindHash, Zset: KindZset, String: KindString}[max(k.Becomes, Absent)]
	if k.Becomes == Unchanged {
		return
	}
	if v == nil || v.kind != kind {
		delete(s.keys, name)
		v = &value{kind: kind, fields: map[string]string{}}
	}
	switch k.Becomes {
	case Absent:
		return
	case Hash:
		v.setFields(c.cells(k))
	case Zset:
		s.changeSet(c, k, v)
	case String:
		v.text = string(k.NewText[:k.NewLen])
	}
	if k.Becomes == Zset && len(v.set) == 0 {
		delete(s.keys, name)
		return
	}
	if k.ExpireFrom != 0 && (v.expire < k.ExpireFrom || v.expire > k.ExpireTo) {
		v.expire = k.ExpireTo
	}
	if v.expire == 0 {
		s.t.Errorf("%s has no expiry", name)
	}
	s.keys[name] = v
}

func (v *value) setFields(cells []Cell) {
	for _, cell := range cells {
		for i, n := range cell.Value {
			if cell.Set>>i&1 != 0 {
				v.fields[fieldName(i, int(cell.Index))] = fmt.Sprint(n)
			}
			if cell.Unset>>i&1 != 0 {
				delete(v.fields, fieldName(i, int(cell.Index)))
			}
		}
	}
}

// changeSet adds a member, then removes others.
func (s *store) changeSet(c *Call, k *Key, v *value) {
	s.t.Helper()
	if k.AddPrefix != 0 {
		text := string(k.NewText[:k.NewLen])
		if k.AddWord > 0 {
			text = c.Args[k.AddWord]
		}
		v.add(Entry{Time: k.AddTime, Member: string(rune(k.AddPrefix)) + text})
	}
	for _, e := range k.Entries {
		if e.Drop == 0 {
			continue
		}
		if i := v.find(e.Member); i < 0 {
			s.t.Errorf("%q: %q is dropped twice, or is not there", c.Args, e.Member)
		} else {
			v.set = slices.Delete(v.set, i, i+1)
		}
	}
}

func (v *value) find(member string) int {
	return slices.IndexFunc(v.set, func(e Entry) bool { return e.Member == member })
}

// add puts a member where the server would.
func (v *value) add(e Entry) {
	if i := v.find(e.Member); i >= 0 {
		v.set = slices.Delete(v.set, i, i+1)
	}
	i, _ := slices.BinarySearchFunc(v.set, e, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Member, b.Member))
	})
	v.set = slices.Insert(v.set, i, e)
}

// expireKeys deletes the keys whose expiry is over.
func (s *store) expireKeys() {
	maps.DeleteFunc(s.keys, func(_ string, v *value) bool { return v.expire != 0 && v.expire < int64(s.now/1000) })
}

// dump writes the whole keyspace, so that two states can be compared.
func (s *store) dump() string {
	s.expireKeys()
	b := ""
	for name, v := range s.keys {
		b += fmt.Sprintf("%s: %+v\n", name, *v)
	}
	lines := strings.Split(b, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
