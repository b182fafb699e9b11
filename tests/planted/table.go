package main

import (
	"fmt"
	"regexp"
	"strings"
)

// A defect is a change in one line of a file. The tests must find it.
type defect struct {
	file, name, old, new string
}

// id names the defect in results.
func (d *defect) id() string { return d.file + ": " + d.name }

// change is text that a defect removes, or adds.
var change = regexp.MustCompile(`\[-(.*?)-\]|\{\+(.*?)\+\}`)

// readTable reads defects.txt, which begins with a description of its form.
func readTable(text string) (defects []defect, err error) {
	for block := range strings.SplitSeq(text, "\n\n") {
		lines := strings.Split(strings.Trim(block, "\n"), "\n")
		if strings.HasPrefix(lines[0], "//") {
			continue
		}
		for i := 1; i < len(lines); i += 2 {
			name, isName := strings.CutPrefix(lines[i], "# ")
			if !isName || i+1 == len(lines) || !change.MatchString(lines[i+1]) {
				return nil, fmt.Errorf("%s: no name, or no line with a change after it: %s", lines[0], lines[i])
			}
			before, after := change.ReplaceAllString(lines[i+1], "$1"), change.ReplaceAllString(lines[i+1], "$2")
			defects = append(defects, defect{lines[0], name, before, after})
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
