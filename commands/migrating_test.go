package commands_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"gothrottle/tests/corpus"
)

// A page: every command of it runs as it stands and replies what the page says, and every row of its table leads to a
// section with commands.
func TestMigrating(t *testing.T) {
	file, err := os.ReadFile("../docs/migrating.md")
	if err != nil {
		t.Fatal(err)
	}
	page, h := string(file), corpus.NewMemory()
	h.Begin(corpus.Epoch)
	run := func(line string) string {
		reply, _ := h.Call(strings.Fields(line))
		if err, failed := reply.(error); failed {
			t.Errorf("%s: %v", line, err)
		}
		return corpus.ReplyText(reply)
	}
	spans, call := regexp.MustCompile("`([^`]*)`"), regexp.MustCompile(`^(GO|CL)\.[A-Z_]+ .`)
	ran := map[string]int{} // by section
	var heading string
	var block []string // the replies of the last block
	fenced := false    // in a block for a shell, which tests/swap_test.go runs
	for _, line := range strings.Split(page, "\n") {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
			continue
		}
		switch {
		case fenced:
		case strings.HasPrefix(line, "## "):
			heading, block = line[3:], nil
		case strings.HasPrefix(line, "    "):
			block = append(block, run(line))
			ran[heading]++
		case strings.HasPrefix(line, "Replies: "):
			if want := "Replies: `" + strings.Join(block, "`, `") + "`"; line != want {
				t.Errorf("%s: the page says %s, want %s", heading, line, want)
			}
		case strings.Count(line, "`")%2 == 1:
			t.Errorf("a code span goes over the end of %q", line)
		case line != "":
			block = nil
			for _, span := range spans.FindAllStringSubmatch(line, -1) {
				if call.MatchString(span[1]) {
					run(span[1])
				}
			}
		}
	}

	rows := regexp.MustCompile(`(?m)^\| \[(.*?)\]\(#(.*?)\) \| .(GO|CL)\.`).FindAllStringSubmatch(page, -1)
	if len(rows) != 9 {
		t.Errorf("%d recipes in the table", len(rows))
	}
	for _, row := range rows {
		anchor := strings.ReplaceAll(strings.ToLower(regexp.MustCompile(`[^\w -]`).ReplaceAllString(row[1], "")), " ", "-")
		if ran[row[1]] == 0 || anchor != row[2] {
			t.Errorf("row %q: no section with commands, or its anchor is not #%s", row[1], anchor)
		}
	}
}
