package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// script calls each command of its arguments and returns the replies. Before the words of a command
// stands their number.
const script = `local all, i = {}, 1
while i <= #ARGV do
  local n = tonumber(ARGV[i])
  local words = {}
  for j = 1, n do words[j] = ARGV[i + j] end
  all[#all + 1] = redis.pcall(unpack(words))
  i = i + n + 1
end
return all`

// library is the script as a function.
var library = "#!lua name=chaos\nredis.register_function('chaos', function(KEYS, ARGV)\n" + script + "\nend)"

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
		return "[" + strings.Join(all, " ") + "]"
	case map[any]any:
		all := make([]string, 0, len(v))
		for key, value := range v {
			all = append(all, text(key)+" "+text(value))
		}
		slices.Sort(all)
		return "[" + strings.Join(all, " ") + "]"
	}
	return fmt.Sprint(v)
}

// pairs writes what GO.INFO replies, a map or a flat array, as name:value and a blank for each pair.
func pairs(v any) string {
	all := map[string]string{}
	switch v := v.(type) {
	case map[any]any:
		for key, value := range v {
			all[text(key)] = text(value)
		}
	case []any:
		for i := 0; i+1 < len(v); i += 2 {
			all[text(v[i])] = text(v[i+1])
		}
	default:
		return text(v)
	}
	b := " "
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b += name + ":" + all[name] + " "
	}
	return b
}

// anys returns words as arguments of a client.
func anys(words []string) []any {
	all := make([]any, len(words))
	for i, word := range words {
		all[i] = word
	}
	return all
}

// isInfo reports whether a call is GO.INFO, whose reply has another form in each protocol.
func isInfo(words []string) bool { return strings.EqualFold(words[0], "GO.INFO") }

// isAll reports whether a call may name several keys.
func isAll(words []string) bool {
	return strings.EqualFold(words[0], "GO.ALL") || strings.EqualFold(words[0], "GO.ALL_RO")
}

// reply is the reply to a call that was sent alone.
func reply(c *redis.Cmd, words []string) string {
	if v, err := c.Result(); err == nil && isInfo(words) {
		return pairs(v)
	}
	return replyText(c)
}

// within returns the replies to calls that came as one array.
func within(c *redis.Cmd, calls [][]string) (replies []string, whole string) {
	v, err := c.Slice()
	if err != nil {
		return nil, replyText(c)
	}
	return each(v, calls)
}

func each(v []any, calls [][]string) (replies []string, whole string) {
	if len(v) != len(calls) {
		return nil, text(v)
	}
	for i := range v {
		if isInfo(calls[i]) && v[i] != nil {
			replies = append(replies, pairs(v[i]))
		} else {
			replies = append(replies, text(v[i]))
		}
	}
	return replies, ""
}

// flat returns calls as the arguments of the script.
func flat(calls [][]string) (all []any) {
	for _, words := range calls {
		all = append(append(all, len(words)), anys(words)...)
	}
	return all
}
