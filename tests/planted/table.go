package main

import (
	"fmt"
	"strings"
)

// A defect is a change in one line of a file. The tests must find it.
type defect struct {
	file, name, old, new string
}

// id names the defect in results.
func (d *defect) id() string { return d.file + ": " + d.name }

// readTable reads defects.txt, which begins with a description of its form.
func readTable(text string) (defects []defect, err error) {
	for block := range strings.SplitSeq(text, "\n\n") {
		lines := strings.Split(strings.Trim(block, "\n"), "\n")
		if strings.HasPrefix(lines[0], "//") {
			continue
		}
		for i := 1; i < len(lines); i += 3 {
			three := append(lines[i:], "", "")[:3]
			name, isName := strings.CutPrefix(three[0], "# ")
			before, isOld := strings.CutPrefix(three[1], "- ")
			after, isNew := strings.CutPrefix(three[2]+" ", "+ ")
			if !isName || !isOld || !isNew {
				return nil, fmt.Errorf("%s: these should begin with #, - and +: %q", lines[0], three)
			}
			defects = append(defects, defect{lines[0], name, before, strings.TrimSpace(after)})
		}
	}
	return defects, nil
}

// plant returns the text of the defect's file with the defect in it.
func (d *defect) plant(text string) (string, error) {
	if n := strings.Count(text, d.old); n != 1 || d.new == d.old {
		return "", fmt.Errorf("%s: the old text occurs %d times, and must once: %s", d.id(), n, d.old)
	}
	return strings.Replace(text, d.old, d.new, 1), nil
}
