package commands

import (
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
	"GO.LEASE":    {clearMost, maxLapsed, maxLapses},
	"GO.ALL":      {MaxClauses},
	"GO.INFO":     {maxHolders},
	"Errors":      {maxErrorWord},
	"Policies":    {maxPolicies},
	"State":       {MaxCells - 1, fieldLocked * MaxCells, AdoptedLen, time.Unix(0, minTAT).UTC().Format(time.DateOnly)},
}
