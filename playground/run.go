// Command playground is a page that needs no server. For GOOS=js it is the page's program: the handlers of the module over
// maps, with the time of each call given by the page. For other systems it serves a folder to this machine.
package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gothrottle/commands"
	"gothrottle/commands/memory"
	"gothrottle/funnel"
)

// runScript runs the lines of a script, each "TIME CALL" with the time in µs since the Unix epoch, on a server without keys.
// So replies depend on the script alone. It returns a reply or an error per line. Times before the last one are that one.
func runScript(script string) (replies []any) {
	server, last := memory.NewServer(), int64(0)
	for line := range strings.Lines(script) {
		at, call, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		now, _ := strconv.ParseInt(at, 10, 64)
		last = max(last, now)
		words, closed := split(call)
		if len(words) > 0 && strings.EqualFold(words[0], "HELP") {
			words[0] = "GO.HELP"
		}
		reply, err := server.Do(funnel.Micros(last), words...)
		switch {
		case len(words) > 1 && strings.EqualFold(words[0], "COMMAND") && strings.EqualFold(words[1], "DOCS"):
			reply = docs(words[2:])
		case !closed:
			reply = memory.Error("ERR quotes are not closed")
		case err != nil:
			reply = err
		}
		replies = append(replies, reply)
	}
	return replies
}

// docs is what COMMAND DOCS says of commands by name, or of all: pairs of a name and pairs.
func docs(names []string) (all []any) {
	for i := range commands.Table {
		c := &commands.Table[i]
		if len(names) == 0 || slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, c.Name) }) {
			all = append(all, strings.ToLower(c.Name), []any{"summary", c.Summary, "since", c.Since, "group", "module",
				"complexity", c.Complexity, "syntax", c.Syntax()})
		}
	}
	return all
}

var escapes = map[byte]byte{'n': '\n', 'r': '\r', 't': '\t', 'b': '\b', 'a': '\a'}

// split cuts a call into words as redis-cli does: 'it\'s', "a\x00b". It reports whether each quote is closed, before a blank.
func split(call string) (words []string, closed bool) {
	const blanks = " \t\r\n"
	var quote byte
	var word []byte // nil between words
	for call += " "; call != ""; {
		c, rest := call[0], call[1:]
		switch {
		case quote == 0 && strings.Contains(blanks, call[:1]):
			if word != nil {
				words = append(words, string(word))
			}
			word = nil
		case quote == 0 && (c == '"' || c == '\''):
			quote, word = c, append([]byte{}, word...)
		case quote != 0 && c == quote:
			if quote = 0; !strings.Contains(blanks, rest[:1]) {
				return nil, false
			}
		case c == '\\' && (quote == '"' || quote == '\'' && rest[0] == '\''):
			c, rest = escaped(rest)
			word = append(word, c)
		default:
			word = append(word, c)
		}
		call = rest
	}
	return words, quote == 0
}

// escaped reads what follows a backslash.
func escaped(text string) (c byte, rest string) {
	if code, err := strconv.ParseUint(text[1:min(3, len(text))], 16, 8); text[0] == 'x' && err == nil {
		return byte(code), text[3:]
	}
	return cmp.Or(escapes[text[0]], text[0]), text[1:]
}

// printed returns a reply as redis-cli prints it, with an indent before each line but the first.
func printed(reply any, indent string) string {
	switch v := reply.(type) {
	case nil:
		return "(nil)"
	case error:
		return "(error) " + v.Error()
	case int64:
		return fmt.Sprintf("(integer) %d", v)
	case memory.Status:
		return string(v)
	case string:
		return quote(v)
	case memory.Map:
		return printedItems(v, indent)
	case []any:
		return printedItems(v, indent)
	}
	return ""
}

func printedItems(items []any, indent string) string {
	if len(items) == 0 {
		return "(empty array)"
	}
	width := len(fmt.Sprint(len(items)))
	deeper := indent + strings.Repeat(" ", width+2)
	var lines []string
	for i, item := range items {
		lines = append(lines, fmt.Sprintf("%*d) %s", width, i+1, printed(item, deeper)))
	}
	return strings.Join(lines, "\n"+indent)
}

// quote writes a text in quotes, as redis-cli does: what is not ASCII is \xhh.
func quote(text string) string {
	b := []byte{'"'}
	for _, c := range []byte(text) {
		if i := strings.IndexByte("\n\r\t\a\b\\\"", c); i >= 0 {
			b = append(b, '\\', `nrtab\"`[i])
		} else if c < ' ' || c > '~' {
			b = fmt.Appendf(b, `\x%02x`, c)
		} else {
			b = append(b, c)
		}
	}
	return string(append(b, '"'))
}
