package main

import (
	"fmt"
	"strings"

	"gothrottle/commands/memory"
)

// printed returns a reply as redis-cli prints it, with an indent before each line but the first. nested says that the arrays
// of pairs in it are maps, as those of GO.INFO are in RESP3; of more than one line they begin on a line of their own.
func printed(reply any, nested bool, indent string) string {
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
		line := fmt.Sprintf("%*d%s %s", width, i/step+1, mark, printed(items[i], nested, deeper))
		if step == 2 {
			value := printed(items[i+1], nested, deeper)
			if line += " => "; strings.Contains(value, "\n") {
				line += "\n" + deeper
			}
			line += value
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
