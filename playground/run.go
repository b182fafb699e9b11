// Command playground is a page that needs no server. For GOOS=js it is the page's program: the handlers of the module over
// maps, with the time of each call given by the page. For other systems it serves a folder to this machine.
package main

import (
	"strconv"
	"strings"

	"gothrottle/commands"
	"gothrottle/commands/memory"
	"gothrottle/funnel"
)

// host runs the calls of one script.
type host struct {
	*memory.Server
	now      funnel.Micros
	settings map[string]string // of CONFIG
}

func newHost() *host {
	commands.CountDenials(0)
	settings := map[string]string{"gothrottle.policies": "", "gothrottle.top-keys": "0"}
	return &host{Server: memory.NewServer(), settings: settings}
}

// runScript runs the lines of a script, each "TIME CALL" with the time in µs since the Unix epoch, on a server without keys.
// So replies depend on the script alone. It returns a reply per line. Times before the last one are that one.
func runScript(script string) (replies []any) {
	h := newHost()
	for line := range strings.Lines(script) {
		at, call, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		now, err := strconv.ParseInt(at, 10, 64)
		words, ok := split(call)
		switch {
		case err != nil:
			replies = append(replies, memory.Error("ERR the line does not begin with a time in microseconds"))
		case !ok:
			replies = append(replies, memory.Error("ERR quotes are not closed"))
		default:
			replies = append(replies, h.call(max(h.now, funnel.Micros(now)), words))
		}
	}
	return replies
}

// call returns the reply of a call, or its error.
func (h *host) call(now funnel.Micros, words []string) any {
	h.now = now
	if len(words) > 0 {
		if p, found := plain[strings.ToUpper(words[0])]; found {
			if len(words) < p.least || p.most > 0 && len(words) > p.most {
				return memory.Error("ERR wrong number of arguments for '" + strings.ToLower(words[0]) + "' command")
			}
			return p.run(h, words[1:])
		}
	}
	reply, err := h.Do(now, words...)
	switch {
	case err == nil:
		return reply
	case strings.HasPrefix(err.Error(), "ERR unknown command"):
		return unknown(words)
	}
	return err
}

// unknown is the server's own error text.
func unknown(words []string) memory.Error {
	text := "ERR unknown command '" + words[0][:min(len(words[0]), 128)] + "', with args beginning with: "
	args := ""
	for _, word := range words[1:] {
		if len(args) >= 128 {
			break
		}
		args += "'" + word[:min(len(word), 128-len(args))] + "' "
	}
	return memory.Error(text + args)
}

// split cuts a call into words as redis-cli does: 'it\'s', "a\x00b". It reports whether all quotes are closed, with a blank
// or the end of the line after them.
func split(call string) (words []string, ok bool) {
	const blanks = " \t\r\n"
	for {
		call = strings.TrimLeft(call, blanks)
		if call == "" {
			return words, true
		}
		word := ""
		for call != "" && !strings.Contains(blanks, call[:1]) {
			if call[0] != '"' && call[0] != '\'' {
				word, call = word+call[:1], call[1:]
				continue
			}
			part, rest, closed := quoted(call)
			if !closed || rest != "" && !strings.Contains(blanks, rest[:1]) {
				return nil, false
			}
			word, call = word+part, rest
		}
		words = append(words, word)
	}
}

var escapes = map[byte]string{'n': "\n", 'r': "\r", 't': "\t", 'b': "\b", 'a': "\a"}

// quoted reads the quoted text that a call begins with.
func quoted(call string) (text, rest string, closed bool) {
	quote := call[0]
	for i := 1; i < len(call); i++ {
		switch c := call[i]; {
		case c == quote:
			return text, call[i+1:], true
		case c != '\\' || i+1 == len(call) || quote == '\'' && call[i+1] != '\'':
			text += string([]byte{c})
		default:
			i++
			if code, err := strconv.ParseUint(call[i+1:min(i+3, len(call))], 16, 8); call[i] == 'x' && err == nil && i+2 < len(call) {
				text, i = text+string([]byte{byte(code)}), i+2
			} else if e, found := escapes[call[i]]; found {
				text += e
			} else {
				text += string([]byte{call[i]})
			}
		}
	}
	return text, "", false
}
