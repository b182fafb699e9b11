package corpus

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"gothrottle/commands"
	"gothrottle/commands/memory"
)

// Args returns words as arguments of a client.
func Args(words []string) []any {
	all := make([]any, len(words))
	for i, word := range words {
		all[i] = word
	}
	return all
}

// ByScript returns the arguments by which a script runs a command: EVAL, its text, the keys, and the words without the first key.
func ByScript(eval, script string, words []string) []any {
	keys := words[1:min(2, len(words))]
	c, call := commands.Find(words[0]), commands.Call{Args: words[1:]}
	call.Keys, call.Clauses = make([]commands.Key, 0, commands.MaxClauses), make([]commands.Clause, 0, commands.MaxClauses)
	if c != nil && c.Plan != nil && !c.OneKey && len(words) > 2 && commands.NewEngine(nil).Plan(c, &call) == commands.NoError {
		keys = nil
		for _, key := range call.Keys {
			keys = append(keys, call.Args[key.Word])
		}
	}
	all := append([]any{eval, script, len(keys)}, Args(keys)...)
	all = append(all, words[0])
	return append(all, Args(words[min(2, len(words)):])...)
}

// ReadReply reads a reply of RESP2 or RESP3, as Host.Call has it.
func ReadReply(in *bufio.Reader) (reply any, err error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	kind, rest := line[0], strings.TrimSpace(line[1:])
	n, wrong := strconv.Atoi(rest)
	switch {
	case kind == '+':
		return memory.Status(rest), nil
	case kind == '-':
		return memory.Error(rest), nil
	case kind == '_' || kind == '$' && n < 0:
		return nil, nil
	case wrong != nil || !strings.ContainsRune(":$*%>", rune(kind)):
		return nil, fmt.Errorf("%q is no reply", line)
	case kind == ':':
		return int64(n), nil
	case kind == '$':
		text := make([]byte, n+len("\r\n"))
		_, err = io.ReadFull(in, text)
		return string(text[:n]), err
	case kind == '%':
		n *= 2
	}
	all := make([]any, n)
	for i := 0; i < n && err == nil; i++ {
		all[i], err = ReadReply(in)
	}
	if kind == '%' {
		return memory.Map(all), err
	}
	return all, err
}

// ReadKeys is a Lua script that returns what keys of a server hold: see Values.
const ReadKeys = `local all = {}
for i, key in ipairs(KEYS) do
	local kind, content = redis.call('TYPE', key).ok, {}
	if kind == 'hash' then content = redis.call('HGETALL', key) end
	if kind == 'zset' then content = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') end
	if kind == 'string' then content = {redis.call('GET', key)} end
	all[i] = {kind, redis.call('PEXPIRETIME', key), content}
end
return all`

var kinds = map[string]commands.Kind{"string": commands.KindString, "hash": commands.KindHash, "zset": commands.KindZset, "list": commands.KindOther}

// Values converts what ReadKeys returns. It is nil for a key that isn't there, and for a hash whose fields have all expired,
// which the server deletes at any time.
func Values(keys []string, found []any) map[string]*memory.Value {
	all := map[string]*memory.Value{}
	for i := range found {
		all[keys[i]] = value(found[i].([]any))
	}
	return all
}

func value(found []any) *memory.Value {
	v, content := &memory.Value{Kind: kinds[found[0].(string)]}, found[2].([]any)
	if v.Expire = max(found[1].(int64), 0); v.Kind == commands.KindString {
		v.Text = content[0].(string)
		return v
	}
	for i := 0; i < len(content); i += 2 {
		first, second := content[i].(string), content[i+1].(string)
		if v.Kind == commands.KindHash {
			v.SetField(first, second)
			continue
		}
		score, _ := strconv.ParseFloat(second, 64)
		v.Set = append(v.Set, memory.Member{Score: score, Text: first})
	}
	if v.Kind == commands.KindAbsent || v.Empty() {
		return nil
	}
	return v
}
