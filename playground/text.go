package main

import (
	"fmt"
	"strings"

	"gothrottle/commands"
)

// appendJSON appends a reply, or a value of the same types, as JSON. An error becomes {"error": text}.
func appendJSON(b []byte, v any) []byte {
	switch v := v.(type) {
	case int64:
		return fmt.Append(b, v)
	case string:
		return appendText(b, v)
	case status:
		return appendText(b, string(v))
	case error:
		return append(appendText(append(b, `{"error":`...), v.Error()), '}')
	case []any:
		b = append(b, '[')
		for i, item := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, item)
		}
		return append(b, ']')
	}
	return append(b, "null"...)
}

func appendText(b []byte, text string) []byte {
	b = append(b, '"')
	for _, r := range text {
		if r < ' ' || r == '"' || r == '\\' {
			b = fmt.Appendf(b, `\u%04x`, r)
		} else {
			b = fmt.Append(b, string(r))
		}
	}
	return append(b, '"')
}

// printed returns a reply as redis-cli prints it. nested says that the arrays of pairs in it are maps, as those of GO.INFO
// are in RESP3; a map in a map begins on a line of its own.
func printed(reply any, nested bool) string { return printedAt(reply, nested, "") }

func printedAt(reply any, nested bool, indent string) string {
	switch v := reply.(type) {
	case nil:
		return "(nil)"
	case error:
		return "(error) " + v.Error()
	case int64:
		return fmt.Sprintf("(integer) %d", v)
	case status:
		return string(v)
	case string:
		return quote(v)
	case []any:
		return printedItems(v, nested, indent)
	}
	return ""
}

func printedItems(items []any, nested bool, indent string) string {
	if len(items) == 0 {
		return "(empty array)"
	}
	step, mark := 1, ")"
	if _, name := items[0].(string); nested && name {
		step, mark = 2, "#"
	}
	width := len(fmt.Sprint(len(items) / step))
	var lines []string
	for i := 0; i < len(items); i += step {
		deeper := indent + strings.Repeat(" ", width+2)
		line := fmt.Sprintf("%*d%s %s", width, i/step+1, mark, printedAt(items[i], nested, deeper))
		if step == 2 {
			line += " => "
			if inner, _ := items[i+1].([]any); len(inner) > 0 {
				line += "\n" + deeper
			}
			line += printedAt(items[i+1], nested, deeper)
		}
		lines = append(lines, line)
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

// table returns the commands for the page: name, summary, synopsis and arguments of each.
func table() (all []any) {
	for i := range commands.Table {
		c := &commands.Table[i]
		all = append(all, []any{c.Name, c.Summary, c.Syntax(), argsOf(c.Args)})
	}
	return all
}

// argsOf returns of each argument the name, the token before it ("" if none), whether it is a keyword, its summary, its
// bounds and the arguments in it.
func argsOf(args []commands.Arg) (all []any) {
	for _, a := range args {
		keyword := int64(0)
		if a.Type == commands.ArgToken {
			keyword = 1
		}
		all = append(all, []any{a.Name, a.Token, keyword, a.Summary, a.Bounds, argsOf(a.Sub)})
	}
	return all
}
