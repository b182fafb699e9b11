package main

import (
	"fmt"
	"html"
	"math"
	"regexp"
	"slices"
	"strings"
)

// A bar is a line of a chart: a bar as long as the median, a whisker, and words behind it.
type bar struct {
	name, label string
	spread
}

// groups of bars: their names, their colours, and how the names in them begin; the rest are other limiters.
var groups = [][3]string{{"gothrottle", "blue", `^(3 x )?GO\.`}, {"no limiter", "grey", `^(PING|INCR$|INCR hot|SET|any)`},
	{"another module", "purple", ` of `}, {"other limiters", "orange", ``}}

// head begins a picture that follows the reader's light or dark scheme. The colours of groups differ for people who are
// colour-blind, too.
const head = `<svg xmlns="http://www.w3.org/2000/svg" width="%[1]g" height="%[2]g" viewBox="0 0 %[1]g %[2]g">
<style>text{font:13px 'Liberation Sans',Arial,Helvetica,sans-serif;fill:#24292f}.title{font-size:16px;font-weight:bold}
.middle{text-anchor:middle}.back{fill:#fff}.pale{stroke:#d8dee4}.ink{fill:none;stroke:#24292f}
.blue{fill:#0072b2}.grey{fill:#9aa5b1}.purple{fill:#7d2160}.orange{fill:#d55e00}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.back{fill:#0d1117}.pale{stroke:#343b44}.ink{stroke:#e6edf3}
.blue{fill:#4aa3df}.grey{fill:#6e7781}.purple{fill:#f0b6dc}.orange{fill:#f0883e}}</style>
`

// draw returns a picture, in SVG, of bars, one below the other.
func draw(title, axis string, bars []bar) string {
	const width, left, right, line, top = 1040.0, 290.0, 90.0, 26.0, 70.0
	longest, end := 0.0, 0.0
	for _, b := range bars {
		longest, end = max(longest, b.median), max(end, b.hi)
	}
	end = min(end, 1.4*longest) // one disturbed round must not shorten all bars
	bottom := top + line*float64(len(bars))
	var s strings.Builder
	text := func(class string, x, y float64, words string) {
		fmt.Fprintf(&s, "<text class=\"%s\" x=\"%.6g\" y=\"%.6g\">%s</text>\n", class, x, y, html.EscapeString(words))
	}
	rect := func(class string, x, y, width, height float64) {
		fmt.Fprintf(&s, "<rect class=\"%s\" x=\"%.6g\" y=\"%.6g\" width=\"%.6g\" height=\"%.6g\"/>\n", class, x, y, width, height)
	}
	fmt.Fprintf(&s, head, width, bottom+50)
	rect("back", 0, 0, width, bottom+50)
	text("title middle", width/2, 24, title)
	x := func(v float64) float64 { return left + min(v, end)/end*(width-left-right) }
	step := math.Pow(10, math.Floor(math.Log10(end))) / 2 // 2 to 20 steps
	if end/step < 4 {
		step /= 2.5
	} else if end/step > 10 {
		step *= 2
	}
	for v := 0.0; v <= end; v += step {
		fmt.Fprintf(&s, "<path class=\"pale\" d=\"M%.6g %gV%g\"/>\n", x(v), top, bottom)
		text("middle", x(v), bottom+18, fmt.Sprintf("%.6g", v))
	}
	text("middle", (left+width-right)/2, bottom+38, axis)
	at, seen := left, map[string]bool{}
	for i, b := range bars {
		middle := top + line*(float64(i)+0.5)
		group := groups[slices.IndexFunc(groups, func(g [3]string) bool { return regexp.MustCompile(g[2]).MatchString(b.name) })]
		if !seen[group[0]] {
			rect(group[1], at, 42, 12, 12)
			text("", at+18, 52, group[0])
			at, seen[group[0]] = at+170, true
		}
		text("", 16, middle+4, b.name)
		rect(group[1], left, middle-8, x(b.median)-left, 16)
		if b.lo < b.hi {
			fmt.Fprintf(&s, "<path class=\"ink\" d=\"M%.6g %gv8m0 -4H%.6gm0 -4v8\"/>\n", x(b.lo), middle-4, x(b.hi))
		}
		text("", x(b.hi)+7, middle+4, b.label)
	}
	return s.String() + "</svg>\n"
}
