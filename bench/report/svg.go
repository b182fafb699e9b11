package report

import (
	"fmt"
	"html"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
)

// The colours on light and on dark pages. Those that meet in one picture differ for people who are colour-blind, too.
var colours = [][3]string{
	{"back", "ffffff", "0d1117"}, {"ink", "24292f", "e6edf3"}, {"pale", "d8dee4", "343b44"}, {"zone", "eaeef2", "262c36"},
	{"blue", "0072b2", "4aa3df"}, {"orange", "d55e00", "f0883e"}, {"green", "35c08f", "7fe8bd"}, {"purple", "7d2160", "f0b6dc"},
	{"sky", "b9d7ea", "1f4a66"}, {"grey", "9aa5b1", "6e7781"},
}

// SVG is a picture that follows the reader's light or dark scheme. A class is a colour: "blue" fills with it, and
// "blue-line" draws with it.
type SVG struct{ strings.Builder }

// NewSVG returns an empty picture.
func NewSVG(width, height float64) *SVG {
	light, dark := "", ""
	for _, c := range colours {
		const rule = ".%s{fill:#%s}.%[1]s-line{fill:none;stroke:#%[2]s}"
		light, dark = light+fmt.Sprintf(rule, c[0], c[1]), dark+fmt.Sprintf(rule, c[0], c[2])
	}
	s := &SVG{}
	fmt.Fprintf(s, `<svg xmlns="http://www.w3.org/2000/svg" width="%g" height="%g" viewBox="0 0 %[1]g %[2]g">
<style>text{font:13px 'Liberation Sans',Arial,Helvetica,sans-serif}.title{font-size:16px;font-weight:bold}
rect{stroke-width:1.5}.end{text-anchor:end}.middle{text-anchor:middle}.dashed{stroke-dasharray:6 3}
%s
@media (prefers-color-scheme:dark){%s}</style>
`, width, height, light, dark)
	s.Rect("back", 0, 0, width, height)
	return s
}

// Rect draws a rectangle.
func (s *SVG) Rect(class string, x, y, width, height float64) {
	fmt.Fprintf(s, "<rect class=\"%s\" x=\"%.6g\" y=\"%.6g\" width=\"%.6g\" height=\"%.6g\"/>\n", class, x, y, width, height)
}

// Path draws lines from point to point; the first is x0, y0.
func (s *SVG) Path(class string, points ...float64) {
	fmt.Fprintf(s, "<path class=\"%s\" d=\"M%s\"/>\n", class, strings.Trim(fmt.Sprintf("%.6g", points), "[]"))
}

// Text writes words. Without "end" or "middle" in its class they begin at x.
func (s *SVG) Text(class string, x, y float64, words string) {
	fmt.Fprintf(s, "<text class=\"%s\" x=\"%.6g\" y=\"%.6g\">%s</text>\n", class, x, y, html.EscapeString(words))
}

// Save writes the file.
func (s *SVG) Save(file string) error {
	return os.WriteFile(file, []byte(s.String()+"</svg>\n"), 0o644)
}

// A Bar is a line of a chart: a bar as long as the median, a whisker, and words behind it.
type Bar struct {
	Name, Label string
	Spread
}

// groups of bars, their colours, and how the names in them begin; the rest are other limiters.
var groups = [][3]string{{"gothrottle", "blue", `^(3 x )?GO\.`}, {"no limiter", "grey", `^(PING|INCR$|INCR hot|SET|any)`},
	{"another module", "purple", ` of `}, {"other limiters", "orange", ``}}

// Chart draws bars, one below the other.
func Chart(title, axis string, bars []Bar) *SVG {
	const left, right, line, top, width = 290.0, 90.0, 26.0, 70.0, 1040.0
	longest, end := 0.0, 0.0
	for _, b := range bars {
		longest, end = max(longest, b.Median), max(end, b.Hi)
	}
	end = min(end, 1.4*longest) // one disturbed round must not shorten all bars
	bottom := top + line*float64(len(bars))
	s := NewSVG(width, bottom+50)
	s.Text("ink title middle", width/2, 24, title)
	x := func(v float64) float64 { return left + min(v, end)/end*(width-left-right) }
	step := math.Pow(10, math.Floor(math.Log10(end))) / 2 // 2 to 20 steps
	if end/step < 4 {
		step /= 2.5
	} else if end/step > 10 {
		step *= 2
	}
	for v := 0.0; v <= end; v += step {
		s.Path("pale-line", x(v), top, x(v), bottom)
		s.Text("ink middle", x(v), bottom+18, fmt.Sprintf("%.6g", v))
	}
	s.Text("ink middle", (left+width-right)/2, bottom+38, axis)
	at, seen := left, map[string]bool{}
	for i, b := range bars {
		middle := top + line*(float64(i)+0.5)
		group := groups[slices.IndexFunc(groups, func(g [3]string) bool { return regexp.MustCompile(g[2]).MatchString(b.Name) })]
		if !seen[group[0]] {
			s.Rect(group[1], at, 42, 12, 12)
			s.Text("ink", at+18, 52, group[0])
			at, seen[group[0]] = at+170, true
		}
		s.Text("ink", 16, middle+4, b.Name)
		s.Rect(group[1], left, middle-8, x(b.Median)-left, 16)
		if b.Lo < b.Hi {
			s.Path("ink-line", x(b.Lo), middle-4, x(b.Lo), middle+4, x(b.Lo), middle, x(b.Hi), middle, x(b.Hi), middle-4, x(b.Hi), middle+4)
		}
		s.Text("ink", x(b.Hi)+7, middle+4, b.Label)
	}
	return s
}
