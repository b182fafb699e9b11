package commands

import "strings"

var help = Command{
	Name:       "GO.HELP",
	Summary:    "Lists the commands, or explains one of them.",
	Complexity: "O(1)",
	Since:      "0.1.0",
	Flags:      "readonly allow-loading allow-stale",
	Arity:      -1,
	MaxArity:   2,
	NoKey:      true,
	Args: []Arg{{Name: "command", Type: ArgString, Optional: true, Bounds: "with or without GO.",
		Summary: "The command to explain."}},
	Handler: runHelp,
}

// GO.HELP reads the table, so its row comes after it.
func init() { Table = append(Table, help) }

func runHelp(c *Call) ErrorCode {
	var lines []string
	if len(c.Args) == 0 {
		for i := range Table {
			lines = append(lines, Table[i].Syntax(), "    "+Table[i].Summary)
		}
	} else if row := findNamed(c.Args[0]); row != nil {
		lines = explain([]string{row.Syntax(), row.Summary}, row.Args, "    ")
	} else {
		return c.fail(ErrNoHelp, 0)
	}
	c.Host().Reply(c, ItemArray, int64(len(lines)), "")
	for _, line := range lines {
		c.Host().Reply(c, ItemText, 0, line)
	}
	c.Shape = Items
	return NoError
}

// findNamed finds a command by its name, with or without GO.
func findNamed(name string) *Command {
	if row := Find(name); row != nil {
		return row
	}
	return Find("GO." + name)
}

// explain appends a line for each argument: its name, its bounds and what it does.
func explain(lines []string, args []Arg, indent string) []string {
	for _, a := range args {
		line := indent + strings.TrimSpace(a.Token+" "+a.Name)
		if a.Type == ArgBlock {
			line = indent + synopsis(a.Sub)[1:]
		}
		if a.Bounds != "" {
			line += " (" + a.Bounds + ")"
		}
		lines = explain(append(lines, line+": "+a.Summary), a.Sub, indent+"    ")
	}
	return lines
}
