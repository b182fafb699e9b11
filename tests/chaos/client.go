package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"gothrottle/tests/corpus"
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
	if errors.As(err, &refused) {
		return text(refused)
	} else if err != nil {
		return lost
	}
	return text(v)
}

// text writes a reply. A map is the same in RESP3 as in RESP2, where it is an array of names and values.
func text(v any) string {
	switch v := v.(type) {
	case error:
		if errors.Is(v, redis.Nil) {
			return text(nil)
		}
		return "-" + v.Error()
	case map[any]any:
		var all []any
		for name, value := range v {
			all = append(all, name, value)
		}
		return text(all)
	case []any:
		var all []string
		for _, one := range v {
			all = append(all, text(one))
		}
		if len(v) == 0 || len(v)%2 > 0 || !isName(v[0]) {
			return fmt.Sprint(all)
		}
		var pairs []string
		for pair := range slices.Chunk(all, 2) {
			pairs = append(pairs, pair[0]+":"+pair[1])
		}
		slices.Sort(pairs)
		return fmt.Sprint(pairs)
	}
	return fmt.Sprint(v)
}

func isName(v any) bool { _, is := v.(string); return is }

// asScript returns the call of the script that makes calls.
func asScript(via string, calls []words) []any {
	script := map[string]string{"eval": chaosScript, "fcall": "chaos"}[via]
	keys := allKeys(calls)
	all := append([]any{via, script, len(keys)}, corpus.Args(keys)...)
	for _, w := range calls {
		all = append(append(all, len(w)), corpus.Args(w)...)
	}
	return all
}
