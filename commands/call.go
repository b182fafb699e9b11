package commands

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

// Call is one call of a command: what the host found, and what the handler wants.
//
// Its memory is the host's, laid out as struct shim_call of cgo/shim.h; the same
// goes for Key and Cell. Package cgo refuses to compile if they come to differ.
type Call struct {
	// Set by the host.
	Args  []string // the words after the command's name
	Keys  []Key    // the keys, in the order of the words, each once
	Cells []Cell   // hash commands: one per word that is a key, then the keys' further cells
	Now   int64    // µs since the Unix epoch; never runs backward

	// Set by the handler.
	Limited int32    // 1 if the call was not admitted
	Replies int32    // how many of Reply are sent
	Reply   [6]int64 // the integers of the reply
}

// Key is one key, as found and as it is to become.
type Key struct {
	// Set by the host.
	Kind   Kind
	Length int64  // the number of elements: a hash's fields
	Text   string // what a string key holds

	// Set by the handler. The host removes, then sets the cells' fields, then sees to
	// the expiry.
	Remove     int32 // 1: delete what is there
	ExpireFrom int64 // ms since the Unix epoch; 0 leaves the expiry alone, else one
	ExpireTo   int64 // outside [ExpireFrom, ExpireTo] becomes ExpireTo

	_ [2]uintptr // the host's own
}

// MaxFields is how many fields of a hash one cell can have.
const MaxFields = 4

// Cell is one limiter in a hash: up to MaxFields integer fields, named by [Fields]
// and, from the second cell of a hash on, its index.
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
}

// reply fills in the five integers that all limiters reply, times in units of unit ns.
func (c *Call) reply(limited bool, limit, remaining, retryAfter, resetAfter, unit int64) {
	if limited {
		c.Limited = 1
	}
	if retryAfter >= 0 {
		retryAfter = ceilDiv(retryAfter, unit)
	}
	c.Replies = 5
	c.Reply[0] = int64(c.Limited)
	c.Reply[1] = limit
	c.Reply[2] = remaining
	c.Reply[3] = retryAfter
	c.Reply[4] = ceilDiv(resetAfter, unit)
}

// ceilDiv returns a/b rounded up, for a >= 0 and b > 0.
func ceilDiv(a, b int64) int64 {
	q := a / b
	if q*b < a {
		q++
	}
	return q
}
