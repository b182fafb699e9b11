package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// publish writes blocks into a page, and the figures into a file beside this program's
// sources, or beside the page if that is a trial. The file has a line about the run, then a
// line for each row.
func publish[Row any](page, data string, about any, rows []*Row, blocks map[string]string, seconds float64) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	filled, err := fillPage(string(text), blocks)
	if err != nil {
		return fmt.Errorf("%s: %w", page, err)
	}
	for _, name := range slices.Sorted(maps.Keys(blocks)) {
		fmt.Printf("\n%s\n%s", name, blocks[name])
	}
	if err := os.WriteFile(page, []byte(filled), 0o644); err != nil {
		return err
	}
	data = dataOf(page, data)
	file, err := os.Create(data)
	if err != nil {
		return err
	}
	defer file.Close()
	to := json.NewEncoder(file)
	if err := to.Encode(about); err != nil {
		return err
	}
	for _, r := range rows {
		if err := to.Encode(r); err != nil {
			return err
		}
	}
	fmt.Printf("\n%.0f s; written: %s and %s\n", seconds, page, data)
	return nil
}

// dataOf returns the path of the file with the figures of a page. Those of pages in docs
// stand in bench.
func dataOf(page, data string) string {
	folder := filepath.Dir(page)
	if filepath.Base(folder) == "docs" {
		folder = filepath.Join(filepath.Dir(folder), "bench")
	}
	return filepath.Join(folder, data)
}

// readFigures reads the file that publish wrote.
func readFigures[Row any](name string, about any) ([]*Row, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	from := json.NewDecoder(file)
	if err := from.Decode(about); err != nil {
		return nil, err
	}
	var rows []*Row
	for from.More() {
		r := new(Row)
		if err := from.Decode(r); err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

const (
	figuresBegin = "<!-- figures: "
	figuresEnd   = "<!-- end of figures -->\n"
)

// fillPage puts each block between the two comments of its name. Every block must have its
// place, and every place its block.
func fillPage(page string, blocks map[string]string) (string, error) {
	parts := strings.Split(page, figuresBegin)
	for i, part := range parts[1:] {
		name, _, found := strings.Cut(part, " -->\n")
		_, after, ends := strings.Cut(part, figuresEnd)
		block, known := blocks[name]
		if !found || !ends || !known {
			return "", fmt.Errorf("no block %q, or no end of it", name)
		}
		parts[i+1] = name + " -->\n" + block + figuresEnd + after
	}
	if len(parts)-1 != len(blocks) {
		return "", fmt.Errorf("%d places for %d blocks of figures", len(parts)-1, len(blocks))
	}
	return strings.Join(parts, figuresBegin), nil
}
