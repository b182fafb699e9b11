package commands

import "gothrottle/funnel"

// Kind says what a key holds.
type Kind int32

// The kinds of keys that limiters can be in, as the server numbers them. KindOther is one of those that no limiter is in.
const (
	KindAbsent Kind = 0
	KindString Kind = 1
	KindOther  Kind = 2
	KindHash   Kind = 3
	KindZset   Kind = 5
	KindAny    Kind = 255 // of Key.Wants only: whatever the key holds is loaded; the command must not write
)

// Becomes says what is to become of a key.
type Becomes int32

// The host does exactly this to the key. A key of another kind is deleted first.
const (
	Unchanged Becomes = 0                       // nothing at the key changes, not even the expiry
	Absent            = 1 + Becomes(KindAbsent) // the key is deleted
	Hash              = 1 + Becomes(KindHash)   // the fields of Key's cells change: see Cell.Set, Cell.Unset
	Zset              = 1 + Becomes(KindZset)   // a member may be added, and entries removed: see Key.Add, Entry.Drop
	String            = 1 + Becomes(KindString) // the key holds Key.NewText[:NewLen]
)

// Shape is the form of a reply.
type Shape int32

const (
	Integers Shape = iota // an array of the first Replies integers of Reply
	Integer               // Reply[0] alone
	Nested                // as Integers, then an array of integers for each of Clauses
	Items                 // what the handler gave to Host.Reply
)

// ItemKind says what one part of a reply of the shape Items is.
type ItemKind int32

const (
	ItemMap     ItemKind = iota // a map of n pairs of the items that follow; an array in RESP2
	ItemArray                   // an array of n of the items that follow
	ItemInteger                 // the integer n
	ItemText                    // the text
	ItemNull
)

// Outcome says how INFO counts a call.
type Outcome int32

const (
	Other    Outcome = iota // the call asked for no units: a peek, a refund, a release
	Admitted                // the call asked for units and got some
	Limited                 // the call asked for units and got none
	Shadowed                // the call asked for units, and would have got none if its policy were no SHADOW
)

// Call is one call of a command: what the host found, and what the handler wants.
//
// The contract of a handler:
//
//   - It reads Args, Keys, Cells and Now, and asks Host for entries of sorted sets.
//   - It returns an error code, or NoError. After an error the host changes nothing.
//   - It sets Outcome, Shape, Replies and Reply for a call that isn't an error. All four are 0
//     before the handler runs, and so are ErrWord and ErrClause. A reply of the shape Items is what the handler
//     gave to Host.
//   - It sets Becomes of every key that changes, with the fields that Becomes names, and the
//     expiry. Before the handler runs, Becomes is Unchanged, and all other fields that handlers
//     set in a key, a cell or an entry are 0. Two are undefined: Key.NewText, and Cell.Value of
//     fields that were not found.
//   - It keeps no pointer into the call: all memory here is the host's, and it is borrowed until
//     the handler returns. Words may be any bytes.
//   - It does not allocate, does not block and starts no goroutine.
//
// A command of several keys has a Plan, which runs before the handler: see Command.Plan. The
// room for keys and clauses is not cleared. A Plan sets Word, Wants and Asked of each key. The
// host sets the other fields when it opens the key. Nobody clears a clause.
//
// Call, Key, Cell, Entry and Clause are laid out as their C twins in cgo/shim.h. Package
// cgo refuses to compile if a twin differs.
type Call struct {
	// Set by the host.
	Args    []string // the words after the command's name
	Keys    []Key    // each key once
	Cells   []Cell   // of hashes: the cells of each key, key after key
	Clauses []Clause // room for the clauses of a Plan

	scratch *scratch // nil, until the engine sets it

	// Set by the host.
	Now funnel.Micros // since the Unix epoch; never runs backward
	DB  int32         // the number of the database; 0 if GO.TOP counts nothing

	// Set by the handler.
	ErrWord   int32  // the index in Args, plus 1, of the word that the error names; 0: none
	ErrClause int16  // the position of the clause that the error is about, from 1; 0: none
	allowed   option // of ErrUnknownOption: what may follow
	Outcome   Outcome
	Shape     Shape
	Replies   int32
	Reply     [6]int64
}

// Key is one key, as found and as it is to become.
type Key struct {
	// Set by the command's Plan, or by the host from the command's row.
	Word  int32 // the index in Args of the key's name
	Wants Kind  // what the key must hold, unless absent; KindAny: anything
	Asked int32 // how many cells the call asks for; only if Wants is KindHash or KindAny

	// Set by the host.
	Kind      Kind
	Length    int64 // the number of elements, or of a string's bytes
	ExpiresAt int64 // ms since the Unix epoch, -1 if never; only if Wants is KindAny
	Text      string
	FirstCell int32 // the key's cells are Cells[FirstCell:][:NumCells]
	NumCells  int32 // first the cells asked for, then further cells of the hash
	Entries   []Entry

	// Set by the handler.
	Becomes    Becomes
	NewLen     int32         // the length of NewText
	AddPrefix  int32         // Zset: if not 0, a member is added: this byte and then a text
	AddWord    int32         // the text is Args[AddWord]; NewText[:NewLen] if AddWord is 0
	AddTime    funnel.Micros // the time of the added member
	ExpireFrom int64         // ms since the Unix epoch; 0: the expiry stays as it is
	ExpireTo   int64         // ms: the new expiry, if the old one is not in [ExpireFrom, ExpireTo]

	slackBase funnel.Nanos // the handler's own: expiry slack is a quarter of this
	checksum  uint64       // the Plan's own: of the name
	_         [3]uintptr   // the host's own
	NewText   [48]byte
}

// MaxFields is how many fields of a hash one cell can have. MaxCells bounds the cells of a key.
const (
	MaxFields = 5
	MaxCells  = 32
)

// Cell is one GCRA limiter in a hash: up to MaxFields integer fields. The names of its fields
// are the numbers 4 x Index to 4 x Index + 3, and 128 + Index.
type Cell struct {
	// Set by the host.
	Index int32  // the position among the cells of the key
	Found uint32 // bit i: field i is there
	Bad   uint32 // bit i: field i is there and isn't an integer

	// Set by the handler.
	Set   uint32 // bit i: field i is to become Value[i]
	Unset uint32 // bit i: field i is to go

	_     int32
	state funnel.ThrottleState // the handler's own: Value decoded

	Value [MaxFields]int64 // set by the host as found, by the handler as it is to become
}

// Entry is one member of a sorted set, as found or put. The member's score is the time with its sign turned.
type Entry struct {
	Time   funnel.Micros // since the Unix epoch; below 0: the score counts something
	Member string
	Bad    int32 // 1: the score is not an integer, or too large

	Drop int32 // 1: set by the handler, to remove the member. 2: set by Host.Put

	_ uintptr // the host's own
}

// MaxClauses bounds the clauses of one call, and so its keys.
const MaxClauses = 32

// Clause is one of several limits of a call.
type Clause struct {
	// Set by the Plan and the handler.
	Key     int32 // index in Call.Keys
	Replies int32 // how many of Reply are sent
	Reply   [6]int64

	clauseWords
	cell int32 // the position among the clauses of its key
}

// clauseWords says where the words of a clause are: indexes in Call.Args.
type clauseWords struct {
	kind         int16 // index in clauseKinds
	opts         option
	first        int32              // the word after the keyword
	period       int32              // only if the kind has units
	quantityWord int32              // 0: not given
	operands     [numOperands]int32 // the words after options, by option.slot
}

// wrong returns where the word is that an error is about.
func (w *clauseWords) wrong(code ErrorCode) int {
	switch code {
	case ErrPeriodNotTime, ErrPeriodRange, ErrMonthsRange, ErrMonthsNotQuota, ErrMonthsWithoutAlign:
		return int(w.period)
	case ErrCountNotInteger, ErrCountRange, ErrTTLNotTime:
		return int(w.first) + 1
	case ErrOffsetNotTime, ErrOffsetRange, ErrMonthsOffsetRange:
		return int(w.operands[optAlign.slot()])
	case ErrMaxWaitNotTime:
		return int(w.operands[optReserve.slot()])
	case ErrLockoutNotTime, ErrLockoutRange:
		return int(w.operands[optLockout.slot()])
	}
	return int(w.first)
}

// Host is what a handler may ask of the server. A key is given by its index in Call.Keys, and holds a sorted set. What
// is found is appended to Key.Entries, as is what Put puts there if the call succeeds. No question costs more than O(log N + what it appends) with N the members. A
// bool says whether an entry was appended. Rank and CountAfter run commands of the server, which may refuse to run
// them, even permanently. If another module has changed the keys of the call meanwhile, they return ErrInternal, and
// the host has the text of the error. The handler must return that error at once.
type Host interface {
	Newest(c *Call, key, most int)                                    // up to most entries, the newest first
	First(c *Call, key int, after funnel.Micros) bool                 // the oldest entry with Time > after
	Put(c *Call, key int, prefix byte, id string, time funnel.Micros) // the member prefix + id, with a new score

	// Oldest appends up to most entries with after < Time <= upTo, the oldest first. Unless upTo is below 0, an entry whose
	// Time is below 0 is the last.
	Oldest(c *Call, key int, after, upTo funnel.Micros, most int)

	Rank(c *Call, key int, rank int64) (found bool, err ErrorCode)             // the entry at a rank; the newest has rank 0; may fail
	Find(c *Call, key int, prefix byte, id string) bool                        // the member prefix + id
	CountAfter(c *Call, key int, after funnel.Micros) (n int64, err ErrorCode) // how many have Time > after, -1 if it fails; appends none
	Release(c *Call, key, keep int)                                            // cuts Key.Entries to the first keep entries

	// Reply appends an item to the reply of the shape Items. The text is copied. Nothing is sent
	// if the handler returns an error.
	Reply(c *Call, kind ItemKind, n int64, text string)
}

// NoTime is before all times.
const NoTime funnel.Micros = -1 << 63

// Host returns what answers the questions of the call's handler.
func (c *Call) Host() Host { return c.scratch.engine.host }
