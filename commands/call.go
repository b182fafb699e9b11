package commands

import (
	"math"

	"gothrottle/funnel"
)

// Kind says what stands at a key.
type Kind int32

// The kinds of keys that limiters can be in; everything else is KindOther.
const (
	KindAbsent Kind = iota
	KindString
	KindHash
	KindZset
	KindOther
)

// Shape is the form of a reply.
type Shape int32

const (
	Integers Shape = iota // an array of the first Replies integers of Reply
	Integer               // Reply[0] alone
	Nested                // as Integers, and then an array of five for each cell asked for
)

// Call is one call of a command: what the host found, and what the handler wants.
//
// Its memory is the host's, laid out as struct shim_call of cgo/shim.h; the same
// goes for Key, Cell and Entry. Package cgo refuses to compile if they come to differ.
type Call struct {
	// Set by the host.
	Args    []string // the words after the command's name
	Keys    []Key    // the keys, in the order of the words, each once
	Cells   []Cell   // of hashes: one per word that is a key, then the keys' further cells
	Entries []Entry  // of sorted sets: what the handler asked the Host for
	Now     int64    // µs since the Unix epoch; never runs backward
	Asked   int32    // how many of Cells the words ask for

	// Set by the handler.
	Limited   int32 // 1 if the call was not admitted
	Shape     Shape
	Replies   int32 // how many of Reply are sent
	Reply     [6]int64
	AddPrefix int32    // not 0: the sorted set gets the member of this byte and a text,
	AddArg    int32    // which is Args[AddArg] or, if that is 0, Set[:SetLen]
	AddTime   int64    // and this time, µs since the Unix epoch
	SetLen    int32    // without AddPrefix: not 0: the string becomes Set[:SetLen]
	Set       [64]byte // room for text
}

// Key is one key, as found and as it is to become.
type Key struct {
	// Set by the host.
	Kind   Kind
	_      int32  // the host's own
	Length int64  // the number of elements, or of a string's bytes
	Text   string // what a string key holds

	// Set by the handler. The host removes; then, unless ExpireFrom is 0, it writes what
	// the call says and sees to the expiry.
	Remove     int32 // 1: delete what is there
	_          int32 // the host's own
	ExpireFrom int64 // ms since the Unix epoch; an expiry outside [ExpireFrom, ExpireTo]
	ExpireTo   int64 // becomes ExpireTo; 0, 0 leaves it alone
	Window     int64 // the handler's own: see setGCRA

	_ [2]uintptr // the host's own
}

// MaxFields is how many fields of a hash one cell can have.
const MaxFields = 4

// Cell is one limiter in a hash: up to MaxFields integer fields. Field i is called
// MaxFields x Index + i.
type Cell struct {
	// Set by the host.
	Key   int32  // index into Call.Keys
	Index int32  // the position among the cells of its key
	Found uint32 // bit i: field i is there
	Bad   uint32 // bit i: field i is there but not an integer

	// Set by the handler.
	Set   uint32 // bit i: field i is to become Value[i]
	Unset uint32 // bit i: field i is to go

	Value [MaxFields]int64 // as found, then as it is to become
	Reply [5]int64         // of a nested reply
	next  decided          // the handler's own
}

// Entry is one member of a sorted set, as found. Its score is the time with its sign turned.
type Entry struct {
	Time   int64  // µs since the Unix epoch
	Member string // borrowed until the handler returns
	Bad    int32  // 1: the score is no time
	Drop   int32  // set by the handler. 1: remove the member

	_ uintptr // the host's own
}

// Host is what a handler may ask of the sorted set at the call's first key, which
// must be one. What is found is appended to Call.Entries. Entries are in the order of
// time, the oldest first.
type Host interface {
	First(c *Call, above int64, n int) bool    // the n-th entry with Time > above
	Last(c *Call, n int) bool                  // the n-th entry from the end
	Head(c *Call, above, upTo int64, most int) // the first ones with above < Time <= upTo
	Find(c *Call, prefix byte, id string) bool // the member prefix + id
	Count(c *Call, upTo int64) int64           // how many have Time <= upTo; appends none
	Release(c *Call, keep int)                 // forgets all but the first keep entries
}

// Beginning is before every time there can be.
const Beginning = math.MinInt64

// TheHost is set by whoever runs handlers, before the first call.
var TheHost Host

// reply fills in the integers that all limiters reply: five, and with UPTO a sixth.
func (c *Call) reply(v *funnel.Verdict, limit int64, opts option) {
	c.Limited = boolInt(v.Limited)
	c.Replies = 5
	if opts&optUpTo != 0 {
		c.Replies = 6
	}
	putReply((*[5]int64)(c.Reply[:]), v, limit, opts.unit())
	c.Reply[5] = v.Granted
}

// putReply writes a verdict as the integers of a reply, times in units of unit ns.
func putReply(r *[5]int64, v *funnel.Verdict, limit, unit int64) {
	r[0], r[1], r[2] = int64(boolInt(v.Limited)), limit, v.Remaining
	r[3], r[4] = waitOf(v.RetryAfter, unit), ceilDiv(v.ResetAfter, unit)
}

// waitOf returns a retry_after in units of unit ns.
func waitOf(retryAfter, unit int64) int64 {
	if retryAfter == funnel.Never {
		return -1
	}
	return ceilDiv(retryAfter, unit)
}

func boolInt(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

// upTo returns what a call with UPTO takes: what is left, if that is less, but not 0.
func upTo(quantity, remaining int64) int64 {
	return min(quantity, max(remaining, 1))
}

// minSlack is how long, in ns, a key may outlive its state whatever its window.
const minSlack = second

// expire asks for an expiry not before end, and at most a quarter of window, or a
// second, after it: a range, so that most calls can leave the expiry alone. Both in ns.
func (k *Key) expire(end, window int64) {
	k.ExpireFrom = ceilDiv(end, millisecond)
	k.ExpireTo = k.ExpireFrom + max(minSlack, window/4)/millisecond
}

// ceilDiv returns a/b rounded up, for a >= 0 and b > 0.
func ceilDiv(a, b int64) int64 {
	q := a / b
	if q*b < a {
		q++
	}
	return q
}
