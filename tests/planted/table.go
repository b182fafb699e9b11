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
		for _, line := range lines[1:] {
			name, code, found := strings.Cut(line, " | ")
			if !found || !change.MatchString(code) {
				return nil, fmt.Errorf("%s: a line must be a name, | and a change: %s", lines[0], line)
			}
			before, after := change.ReplaceAllString(code, "$1"), change.ReplaceAllString(code, "$2")
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
