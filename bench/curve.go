package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A curve is what the memory of one program was, in MB, each minute.
type curve struct {
	name, colour string
	values       []float64
}

// curves reads results/memory-*.csv, which build/test-memory.sh writes, and draws docs/memory.svg.
func curves(results, docs string) error {
	files, err := filepath.Glob(filepath.Join(results, "memory-*.csv"))
	if err != nil || files == nil {
		return err
	}
	const height, bottom = 300.0, 40.0
	svg := fmt.Sprintf(head, width, height*float64(len(files))+bottom) + `<rect class="back" width="100%" height="100%"/>` + "\n"
	for i, file := range files {
		server := strings.NewReplacer("memory-", "", ".csv", "", "_", " ").Replace(filepath.Base(file))
		all, failed := readCurves(file)
		svg += panel(server, height*float64(i), height, all)
		err = errors.Join(err, failed)
	}
	return errors.Join(err, os.WriteFile(filepath.Join(docs, "memory.svg"), []byte(svg+"</svg>\n"), 0o644))
}

func readCurves(file string) ([]curve, error) {
	all := []curve{{name: "used_memory", colour: "blue"}, {name: "server, resident", colour: "purple"},
		{name: "client, resident", colour: "grey"}, {name: "gateway, resident", colour: "orange"}}
	text, err := os.ReadFile(file)
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n")[1:] {
		for i, field := range strings.Split(line, ",")[2:] { // behind the minute and the keys
			n, failed := strconv.ParseFloat(field, 64)
			all[i].values, err = append(all[i].values, n/1e6), errors.Join(err, failed)
		}
	}
	return all, err
}

const width = 1040.0

// panel draws curves over hours, with a line behind for each 20 MB.
func panel(title string, top, height float64, all []curve) string {
	const left, right = 60.0, 190.0
	most, minutes := 0.0, float64(len(all[0].values)-1)
	for _, c := range all {
		for _, v := range c.values {
			most = max(most, v*1.1)
		}
	}
	x := func(minute float64) float64 { return left + minute/minutes*(width-left-right) }
	y := func(mb float64) float64 { return top + height - mb/most*(height-50) }
	var s strings.Builder
	fmt.Fprintf(&s, "<text class=\"title\" x=\"%g\" y=\"%g\">%s</text>\n", left, top+30, title)
	for mb := 0.0; mb < most; mb += 20 {
		fmt.Fprintf(&s, "<path class=\"pale\" d=\"M%g %.1fH%g\"/><text x=\"16\" y=\"%.1f\">%g MB</text>\n", left, y(mb), width-right, y(mb)-3, mb)
	}
	for minute := 30.0; minute <= minutes; minute += 30 {
		fmt.Fprintf(&s, "<text class=\"middle\" x=\"%.1f\" y=\"%g\">%g h</text>\n", x(minute), top+height+16, minute/60)
	}
	for _, c := range all {
		var over, under string // a line that is filled has the colours of the bars
		for i, v := range c.values {
			over += fmt.Sprintf("L%.1f %.1f", x(float64(i)), y(v)-1)
			under = fmt.Sprintf("L%.1f %.1f", x(float64(i)), y(v)+1) + under
		}
		last := y(c.values[len(c.values)-1])
		fmt.Fprintf(&s, "<path class=\"%s\" d=\"M%sZ\"/><text x=\"%g\" y=\"%.1f\">%s</text>\n", c.colour, over[1:]+under, width-right+8, last+4, c.name)
	}
	return s.String()
}
