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

// runScript runs the lines of a script, each "TIME CALL" with the time in µs since the Unix epoch, on a server without keys.
// So replies depend on the script alone. It returns a reply or an error per line. Times before the last one are that one.
func runScript(script string) (replies []any) {
	commands.CountDenials(0)
	server, last := memory.NewServer(), int64(0)
	for line := range strings.Lines(script) {
		at, call, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		now, err := strconv.ParseInt(at, 10, 64)
		words, closed := split(call)
		var reply any
		switch {
		case err != nil:
			err = memory.Error("ERR the line does not begin with a time in microseconds")
		case !closed:
			err = memory.Error("ERR quotes are not closed")
		default:
			last = max(last, now)
			reply, err = server.Do(funnel.Micros(last), words...)
		}
		if err != nil {
			reply = err
		}
		replies = append(replies, reply)
	}
	return replies
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
