package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// chaosScript calls each command of its arguments and returns the replies. Before the words of a command
// is their number.
const chaosScript = `local all, i = {}, 1
while i <= #ARGV do
  local n = tonumber(ARGV[i])
  local words = {}
  for j = 1, n do words[j] = ARGV[i + j] end
  all[#all + 1] = redis.pcall(unpack(words))
  i = i + n + 1
end
return all`

// library is the script as a function.
var library = "#!lua name=chaos\nredis.register_function('chaos', function(KEYS, ARGV)\n" + chaosScript + "\nend)"

// lost is the reply of a call whose reply did not arrive.
const lost = "(lost)"

// replyText returns a reply as text. Errors begin with a minus sign.
func replyText(c *redis.Cmd) string {
	v, err := c.Result()
	var refused redis.Error
	switch {
	case errors.Is(err, redis.Nil):
		return "<nil>"
	case errors.As(err, &refused):
		return "-" + refused.Error()
	case err != nil:
		return lost
	}
	return text(v)
}

// text writes a reply. A map is the same in RESP3 as in RESP2, where it is an array of names and values.
func text(v any) string {
	switch v := v.(type) {
	case error:
		if errors.Is(v, redis.Nil) {
			return "<nil>"
		}
		return "-" + v.Error()
	case []any:
		all := make([]string, len(v))
		for i := range v {
			all[i] = text(v[i])
		}
		if named(v) {
			return pairs(all)
		}
		return "[" + strings.Join(all, " ") + "]"
	case map[any]any:
		var all []string
		for key, value := range v {
			all = append(all, text(key), text(value))
		}
		return pairs(all)
	}
	return fmt.Sprint(v)
}

// named reports whether the first element of an array, the third and so on are texts.
func named(v []any) bool {
	for i := 0; i < len(v); i += 2 {
		if _, ok := v[i].(string); !ok {
			return false
		}
	}
	return len(v) > 0 && len(v)%2 == 0
}

func pairs(all []string) string {
	lines := []string{}
	for pair := range slices.Chunk(all, 2) {
		lines = append(lines, pair[0]+":"+pair[1])
	}
	slices.Sort(lines)
	return "[" + strings.Join(lines, " ") + "]"
}

// anys returns words as arguments of a client.
func anys(words []string) []any {
	all := make([]any, len(words))
	for i, word := range words {
		all[i] = word
	}
	return all
}

// each returns the replies to calls that came as one array.
func each(v []any, calls []words) (replies []string, whole string) {
	if len(v) != len(calls) {
		return nil, text(v)
	}
	for i := range v {
		replies = append(replies, text(v[i]))
	}
	return replies, ""
}

// flat returns calls as the arguments of the script.
func flat(calls []words) (all []any) {
	for _, w := range calls {
		all = append(append(all, len(w)), anys(w)...)
	}
	return all
}
