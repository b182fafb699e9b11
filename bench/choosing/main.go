// Command choosing draws the pictures of docs/choosing.md into a folder: what each limiter makes of the same traffic. The
// decisions are those of the module's own commands.
package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"

	"gothrottle/bench/report"
)

func main() {
	for _, p := range pictures() {
		if err := p.draw().Save(filepath.Join(os.Args[1], p.file)); err != nil {
			fmt.Fprintln(os.Stderr, "choosing:", err)
			os.Exit(1)
		}
	}
}

const (
	width, left, right = 1040.0, 124.0, 24.0
	square, stack      = 8.6, 9.8 // the side of a call's square, and from one to the next above it
	meterHeight, gap   = 112.0, 22.0
	head, foot         = 70.0, 48.0
)

func x(ms float64) float64 { return left + ms/1000/seconds*(width-left-right) }

func (p *picture) draw() *report.SVG {
	up, down := deepest(p.calls), deepest(p.below)
	line := head + stack*float64(up) + 3 // where the calls stand
	top := line + stack*float64(down) + 3 + gap
	s := report.NewSVG(width, top+(meterHeight+gap)*float64(len(p.meters))-gap+foot)
	p.legend(s)
	p.background(s, head, top-gap)
	p.squares(s, p.calls, line-stack, -stack)
	p.squares(s, p.below, line+stack-square, stack)
	s.Path("ink-line", left, line, width-right, line)
	s.Text("ink end", left-16, line-8, "calls")
	s.Text("ink end", left-16, line+18, p.belowName)
	for _, m := range p.meters {
		p.background(s, top, top+meterHeight)
		p.meter(s, m, top+meterHeight)
		top += meterHeight + gap
	}
	for t := 0; t <= seconds; t += 10 {
		s.Text("ink middle", x(float64(t*1000)), top-gap+18, fmt.Sprint(t))
	}
	s.Text("ink middle", (left+width-right)/2, top-gap+36, "seconds")
	return s
}

// column is the second in which an event is drawn.
func column(e event) int { return e.at / 1000 }

// deepest returns how many events there are at most in one second.
func deepest(events []event) (most int) {
	in := map[int]int{}
	for _, e := range events {
		in[column(e)]++
		most = max(most, in[column(e)])
	}
	return most
}

// legend writes the title and names the colours.
func (p *picture) legend(s *report.SVG) {
	entries := [][2]string{{admitted, "admitted"}}
	switch p.over {
	case delayed:
		entries = append(entries, [2]string{delayed, "admitted, with a wait"})
	case charged:
		entries = append(entries, [2]string{charged, "charged by FORCE; debt"}, [2]string{returned, "given back"})
	}
	s.Text("ink title", left, 24, p.title)
	at := left
	for _, e := range append(entries, [2]string{denied, "denied"}) {
		s.Rect(e[0], at, 44, square, square)
		s.Text("ink", at+square+7, 53, e[1])
		at += float64(len(e[1]))*7 + 46
	}
}

// background draws the lockouts and the lines of the time axis.
func (p *picture) background(s *report.SVG, top, bottom float64) {
	for _, l := range p.locked {
		s.Rect("zone", x(float64(l[0])), top, x(float64(l[1]))-x(float64(l[0])), bottom-top)
		if top == head {
			s.Text("ink middle", x(float64(l[0]+l[1])/2), top+12, "locked")
		}
	}
	for t := 0.0; t <= seconds; t += 10 {
		s.Path("pale-line", x(t*1000), top, x(t*1000), bottom)
	}
	for _, end := range p.ends {
		s.Path("ink-line dashed", x(float64(end)), top, x(float64(end)), bottom)
	}
}

func (p *picture) squares(s *report.SVG, events []event, y, next float64) {
	in := map[int]float64{}
	for _, e := range events {
		if c := column(e); c < seconds { // callers act also after the end of the axis
			s.Rect(e.outcome, x(float64(c*1000+500))-square/2, y+next*in[c], square, square)
			in[c]++
		}
	}
}

// meter draws what is in use as an area, and the limit as a line.
func (p *picture) meter(s *report.SVG, m *meter, zero float64) {
	highest := m.limit
	for _, u := range m.use {
		highest = max(highest, u[1])
	}
	y := func(units float64) float64 { return zero - units/(1.12*highest)*meterHeight }
	area := func(least, most float64) []float64 {
		points := []float64{x(0), y(least)}
		for _, u := range corners(m.use, least, most) {
			points = append(points, x(u[0]), y(u[1]))
		}
		return append(points, x(seconds*1000), y(least))
	}
	s.Path("sky", area(0, m.limit)...)
	if highest > m.limit {
		s.Path(p.over, area(m.limit, highest)...)
	}
	curve := area(0, highest)
	s.Path("blue-line", curve[2:len(curve)-2]...)
	s.Path("ink-line", left, zero, width-right, zero)
	s.Path("ink-line dashed", left, y(m.limit), width-right, y(m.limit))
	s.Text("ink end", left-16, y(m.limit)+4, fmt.Sprint("limit ", m.limit))
	s.Text("ink end", left-16, y(m.limit/2)+4, m.name)
	s.Text("ink end", left-16, zero+4, "0")
}

// corners returns a line, kept between two levels, without the points within its straight stretches.
func corners(line [][2]float64, least, most float64) (kept [][2]float64) {
	for _, c := range line {
		c[1] = min(max(c[1], least), most)
		if n := len(kept); n >= 2 {
			a, b := kept[n-2], kept[n-1]
			if math.Abs((b[1]-a[1])*(c[0]-b[0])-(c[1]-b[1])*(b[0]-a[0])) < 1e-6 {
				kept = kept[:n-1]
			}
		}
		kept = append(kept, c)
	}
	return kept
}
