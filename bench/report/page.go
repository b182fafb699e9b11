package report

import (
	"fmt"
	"os"
	"strings"
)

// Table is a table in Markdown, its headings first. All columns but the first hold numbers.
func Table(lines ...[]string) string {
	var b strings.Builder
	for i, line := range lines {
		b.WriteString("| " + strings.Join(line, " | ") + " |\n")
		if i == 0 {
			b.WriteString("|---|" + strings.Repeat("---:|", len(line)-1) + "\n")
		}
	}
	return b.String()
}

// Thousands writes n with a comma between groups of three digits.
func Thousands(n float64) string {
	text := fmt.Sprintf("%.0f", n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

const end = "<!-- end of figures -->\n"

// Fill puts each block between the two comments of its name. Every block must have its place, and every place its block.
func Fill(page string, blocks map[string]string) (string, error) {
	parts := strings.Split(page, "<!-- figures: ")
	for i, part := range parts[1:] {
		name, _, found := strings.Cut(part, " -->\n")
		_, after, ends := strings.Cut(part, end)
		block, known := blocks[name]
		if !found || !ends || !known {
			return "", fmt.Errorf("no block %q, or no end of it", name)
		}
		parts[i+1] = name + " -->\n" + block + end + after
	}
	if len(parts)-1 != len(blocks) {
		return "", fmt.Errorf("%d places for %d blocks of figures", len(parts)-1, len(blocks))
	}
	return strings.Join(parts, "<!-- figures: "), nil
}

// Write fills a page in place.
func Write(page string, blocks map[string]string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	filled, err := Fill(string(text), blocks)
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	return os.WriteFile(page, []byte(filled), 0o644)
}
