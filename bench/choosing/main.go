// Command choosing draws the pictures of docs/choosing.md into a folder: what each limiter makes of the same traffic. The
// decisions are those of the module's own commands.
package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

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
	left, right, square, stack  = 124.0, 1016.0, 8.6, 9.8 // a square is a call; stack is from one to the next above it
	head, meterHeight, gap, end = 70.0, 112.0, 22.0, 48.0
)

func x(ms float64) float64 { return left + ms/axis*(right-left) }

func (p *picture) draw() *report.SVG {
	line := head + stack*squares(nil, p.calls, 0, 0) + 3 // below the calls
	top := line + stack*squares(nil, p.below, 0, 0) + 3
	s := report.NewSVG(right+24, top+(meterHeight+gap)*float64(len(p.meters))+end)
	p.legend(s)
	p.background(s, head, top)
	for _, e := range p.locked {
		s.Text("ink middle", x(float64(e[0]+e[1])/2), head+12, "locked")
	}
	squares(s, p.calls, line-stack, -stack)
	squares(s, p.below, line+stack-square, stack)
	s.Path("ink-line", left, line, right, line)
	s.Text("ink end", left-16, line-8, "calls")
	s.Text("ink end", left-16, line+18, p.belowName)
	for _, m := range p.meters {
		p.background(s, top+gap, top+gap+meterHeight)
		top += gap + meterHeight
		p.meter(s, m, top)
	}
	for t := 0; t <= axis; t += 10_000 {
		s.Text("ink middle", x(float64(t)), top+18, fmt.Sprint(t/1000))
	}
	s.Text("ink middle", (left+right)/2, top+36, "seconds")
	return s
}

// squares draws events, those of one second on each other, and returns how many of them there are at most. Without a picture
// it only counts.
func squares(s *report.SVG, events []event, y, next float64) (most float64) {
	in := map[int]float64{}
	for _, e := range events {
		second := e.at / 1000
		if e.at < axis && s != nil { // callers act also after its end
			s.Rect(e.outcome, x(float64(second*1000+500))-square/2, y+next*in[second], square, square)
		}
		in[second]++
		most = max(most, in[second])
	}
	return most
}

// legend writes the title and names the colours.
func (p *picture) legend(s *report.SVG) {
	s.Text("ink title", left, 24, p.title)
	at := left
	for _, e := range [][2]string{{admitted, "admitted"}, {denied, "denied"}, {delayed, "admitted, with a wait"},
		{charged, "charged by FORCE; debt"}, {returned, "given back"}} {
		if e[0] == admitted || e[0] == denied || strings.HasPrefix(e[0], p.over) && p.over != "" {
			s.Rect(e[0], at, 44, square, square)
			s.Text("ink", at+square+7, 53, e[1])
			at += float64(len(e[1]))*7 + 46
		}
	}
}

// background draws the lockouts and the lines of the time axis.
func (p *picture) background(s *report.SVG, top, bottom float64) {
	for _, l := range p.locked {
		s.Rect("zone", x(float64(l[0])), top, x(float64(l[1]))-x(float64(l[0])), bottom-top)
	}
	for t := 0.0; t <= axis; t += 10_000 {
		s.Path("pale-line", x(t), top, x(t), bottom)
	}
	for _, t := range p.ends {
		s.Path("ink-line dashed", x(float64(t)), top, x(float64(t)), bottom)
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
		return append(points, x(axis), y(least))
	}
	s.Path("sky", area(0, m.limit)...)
	if p.over != "" {
		s.Path(p.over, area(m.limit, highest)...)
	}
	curve := area(0, highest)
	s.Path("blue-line", curve[2:len(curve)-2]...)
	s.Path("ink-line", left, zero, right, zero)
	s.Path("ink-line dashed", left, y(m.limit), right, y(m.limit))
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
