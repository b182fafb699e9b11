package commands

import (
	"fmt"

	"gothrottle/funnel"
)

// Bounds and defaults of GO.TOP.
const (
	defaultTop = 10
	MaxTopKeys = funnel.MaxTopSize
)

var top = Command{
	Name:       "GO.TOP",
	Summary:    "Lists the keys whose calls this node denied most often.",
	Complexity: "O(N*log(N)) with N the configuration top-keys",
	Since:      "0.1.0",
	Flags:      "admin readonly allow-loading allow-stale",
	FurtherTip: "request_policy:all_shards",
	Arity:      -1,
	MaxArity:   3,
	NoKey:      true,
	Args: []Arg{
		{Name: "count", Type: ArgInteger, Optional: true, Bounds: fmt.Sprintf("1 to %d", MaxTopKeys),
			Summary: fmt.Sprintf("How many keys, %d if not given.", defaultTop)},
		{Name: "RESET", Type: ArgToken, Optional: true, Summary: "Then begin to count again."},
	},
	Handler: runTop,
}

// NewDenials returns an empty table for this many keys, 0 to MaxTopKeys; nil for 0.
func NewDenials(keys int) *funnel.Top {
	if keys == 0 {
		return nil
	}
	return funnel.NewTop(keys)
}

func runTop(c *Call) (err ErrorCode) {
	count, rest := int64(defaultTop), c.Args
	if len(rest) > 0 && looksNumeric(rest[0]) {
		if count, err = intArg(rest[0], 1, MaxTopKeys, ErrTopCountNotInteger, ErrTopCountRange); err != NoError {
			return err
		}
		rest = rest[1:]
	}
	reset := len(rest) > 0 && isWord(rest[0], "RESET")
	if reset {
		rest = rest[1:]
	}
	if len(rest) > 0 {
		return c.fail(ErrTopOption, len(c.Args)-len(rest))
	}
	denials := c.scratch.engine.denials
	if denials == nil {
		return ErrTopOff
	}
	most := denials.Most(int(count))
	c.Host().Reply(c, ItemArray, int64(len(most)), "")
	for _, key := range most {
		c.Host().Reply(c, ItemArray, 3, "")
		c.Host().Reply(c, ItemText, 0, key.Name)
		c.Host().Reply(c, ItemInteger, key.Denied, "")
		c.Host().Reply(c, ItemInteger, key.Error, "")
	}
	if reset {
		denials.Reset()
	}
	c.Shape = Items
	return NoError
}
