package commands

import (
	"slices"
	"time"

	"gothrottle/funnel"
)

// Tests outside this package need these.

// Synopsis writes arguments as documentation does.
func Synopsis(args []Arg) string { return synopsis(args) }

// IsOption reports whether a word is an option.
func IsOption(word string) bool { return findOption(word) != 0 }

// DocumentedNumbers are the bounds that sections of docs/commands.md name.
var DocumentedNumbers = map[string][]any{
	"GO.THROTTLE": {int64(maxPeriod / (365 * 86400 * funnel.Second))},
	"GO.WINDOW":   {funnel.WindowParts, funnel.WindowParts + 1, int64(funnel.MaxInUse), clearMost},
	"GO.LEASE":    {clearMost},
	"GO.ALL":      {clearMost, MaxClauses},
	"GO.INFO":     {maxHolders},
	"Effects":     {clearMost},
	"Errors":      {maxErrorWord},
	"Policies":    {maxPolicies},
	"State":       {MaxCells - 1, fieldLocked * MaxCells, base, AdoptedLen, time.Unix(0, minTAT).UTC().Format(time.DateOnly)},
}

// Rubbish fills the room of the next call with what no handler may read. In every second call the room for clauses holds what
// the call before left there.
func Rubbish(c *Call) {
	c.Keys = slices.Repeat([]Key{poisonedKey}, MaxClauses)
	for i := range c.Keys {
		c.Keys[i].Entries = []Entry{{Time: -77, Member: "rubbish", Bad: -77, Drop: -77}}
	}
	c.Keys = c.Keys[:0]
	c.Cells = slices.Repeat([]Cell{{Index: -77, Found: 0xff, Bad: 0xff, Set: 0xff, Unset: 0xff}}, MaxCells)[:0]
	if left == nil {
		left = slices.Repeat([]Clause{poisonedClause}, MaxClauses)
		c.Clauses = left[:0]
		return
	}
	c.Clauses, left = left[:0], nil
}

var left []Clause

// poisonedKey and poisonedClause have rubbish in every field.
var (
	poisonedKey = Key{
		Word: -77, Wants: -77, Asked: -77, Kind: -77, Length: -77, Text: "rubbish", ExpiresAt: -77, FirstCell: -77, NumCells: -77,
		Becomes: -77, NewLen: -77, AddPrefix: -77, AddWord: -77, AddTime: -77, ExpireFrom: -77, ExpireTo: -77,
		slackBase: -77, NewText: [48]byte{0: 0xa5, 17: 0xa5, 33: 0xa5, 47: 0xa5},
	}
	poisonedClause = Clause{Key: -77, Replies: -77, Reply: [6]int64{-77, -77, -77, -77, -77, -77}, cell: -77,
		clauseWords: clauseWords{kind: -77, opts: 0xff, first: -77, quantityWord: -77, operands: [numOperands]int32{-77, -77, -77}}}
)
