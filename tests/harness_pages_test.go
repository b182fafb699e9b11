package tests

import (
	"regexp"
	"strings"
)

// commandsIn returns the command lines of each indented block of a page. replies holds what
// the line "Replies:" after a block promises: one reply for each line, or nil.
func commandsIn(page string) (blocks [][]string, replies [][]string) {
	inBlock := false
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		if text, ok := strings.CutPrefix(line, "    "); ok {
			if !inBlock {
				blocks, replies = append(blocks, nil), append(replies, nil)
			}
			inBlock = true
			blocks[len(blocks)-1] = append(blocks[len(blocks)-1], text)
			continue
		}
		inBlock = inBlock && line == ""
		if promised, ok := strings.CutPrefix(line, "Replies: "); ok {
			for _, reply := range regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(promised, -1) {
				replies[len(replies)-1] = append(replies[len(replies)-1], reply[1])
			}
		}
	}
	return blocks, replies
}
