package main

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"

	"gothrottle/funnel"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// theme has the colours of one background. Colours that meet in one picture differ also for people who
// are colour-blind, and denied calls are outlines.
type theme struct {
	suffix                 string
	back, ink, pale, zone  color.Color
	admitted, denied       color.Color
	delayed, charged, area color.Color
}

var themes = []theme{
	{
		suffix: "light", back: rgb(0xffffff), ink: rgb(0x24292f), pale: rgb(0xd8dee4), zone: rgb(0xeaeef2),
		admitted: rgb(0x0072b2), denied: rgb(0xd55e00), delayed: rgb(0x35c08f), charged: rgb(0x7d2160), area: rgb(0xb9d7ea),
	},
	{
		suffix: "dark", back: rgb(0x0d1117), ink: rgb(0xe6edf3), pale: rgb(0x343b44), zone: rgb(0x262c36),
		admitted: rgb(0x4aa3df), denied: rgb(0xf0883e), delayed: rgb(0x7fe8bd), charged: rgb(0xf0b6dc), area: rgb(0x1f4a66),
	},
}

func rgb(n uint32) color.Color {
	return color.RGBA{uint8(n >> 16), uint8(n >> 8), uint8(n), 0xff}
}

// All in points.
const (
	width       = 780
	left, right = 92, 18
	labelGap    = 14  // between the labels at the left and the axis
	square      = 6.4 // the side of a call's square
	stack       = 7.4 // from one square to the next above it
	meterHeight = 84
	gap         = 16
	head        = 52 // title and legend
	foot        = 36 // the time axis
)

// write writes the picture once for each theme.
func (p *picture) write(folder string) error {
	for _, th := range themes {
		if err := os.WriteFile(filepath.Join(folder, p.file+"-"+th.suffix+".svg"), p.draw(th), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// draw returns the SVG. The file names several fonts, so that every viewer has one of them.
func (p *picture) draw(th theme) []byte {
	up, down := deepest(p.calls), deepest(p.below)
	callHeight := vg.Length(up+down)*stack + 4
	height := head + callHeight + vg.Length(len(p.meters))*(meterHeight+gap) + foot
	canvas := vgsvg.New(width, height)
	whole := draw.New(canvas)
	whole.SetColor(th.back)
	whole.Fill(whole.Rectangle.Path())

	top := height - head
	part := func(h vg.Length) draw.Canvas {
		c := draw.Crop(whole, left, -right, top-h, top-height)
		top -= h + gap
		return c
	}
	pen := &pen{theme: th, picture: p}
	pen.head(whole)
	c := part(callHeight)
	pen.show(c, -float64(down), float64(up), pen.calls)
	for i := range p.meters {
		m := &p.meters[i]
		c = part(meterHeight)
		pen.show(c, 0, m.highest()*1.12, func(c draw.Canvas, x, y scale) { pen.meter(c, x, y, m) })
	}
	pen.axis(c)

	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		panic(err) // a buffer takes everything
	}
	return bytes.ReplaceAll(svg.Bytes(), []byte("font-family:Liberation Sans;"),
		[]byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif;"))
}

func (m *meter) highest() float64 {
	most := float64(m.limit)
	for _, l := range m.use {
		most = max(most, l.units)
	}
	return most
}

// column is the second in which an event is drawn.
func column(e event) int { return int(e.at / funnel.Second) }

// deepest returns how many events there are at most in one second.
func deepest(events []event) (most int) {
	inColumn := map[int]int{}
	for _, e := range events {
		inColumn[column(e)]++
		most = max(most, inColumn[column(e)])
	}
	return most
}

func inSeconds(t funnel.Nanos) float64 { return float64(t) / float64(funnel.Second) }

// scale maps a time in seconds, or a number of units, to a place.
type scale func(float64) vg.Length

// pen draws the parts of one picture.
type pen struct {
	theme
	*picture
}

// show draws one part over the time axis.
func (d *pen) show(c draw.Canvas, bottom, top float64, content func(c draw.Canvas, x, y scale)) {
	p := plot.New()
	p.BackgroundColor = nil
	p.HideAxes()
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, seconds, bottom, top
	p.Add(painter(func(c draw.Canvas, p *plot.Plot) {
		x, y := p.Transforms(&c)
		d.background(c, x)
		content(c, x, y)
	}))
	p.Draw(c)
}

type painter func(c draw.Canvas, p *plot.Plot)

// Plot implements plot.Plotter.
func (f painter) Plot(c draw.Canvas, p *plot.Plot) { f(c, p) }

// background draws the lockouts and the lines of the time axis.
func (d *pen) background(c draw.Canvas, x scale) {
	for _, s := range d.locked {
		box(&c, d.zone, x(inSeconds(s.from)), c.Min.Y, x(inSeconds(s.to)), c.Max.Y)
	}
	for t := 0.0; t <= seconds; t += 10 {
		c.StrokeLine2(draw.LineStyle{Color: d.pale, Width: 0.6}, x(t), c.Min.Y, x(t), c.Max.Y)
	}
	for _, end := range d.ends {
		at := x(inSeconds(end))
		c.StrokeLine2(draw.LineStyle{Color: d.ink, Width: 0.9, Dashes: []vg.Length{2, 2}}, at, c.Min.Y, at, c.Max.Y)
	}
}

// calls draws a square for each call, and one below the line for what came of it later.
func (d *pen) calls(c draw.Canvas, x, y scale) {
	for _, side := range []struct {
		events []event
		sign   vg.Length
	}{{d.picture.calls, 1}, {d.below, -1}} {
		inColumn := map[int]int{}
		for _, e := range side.events {
			if e.at >= at(seconds) {
				continue // callers act also after the end of the axis
			}
			n := inColumn[column(e)]
			inColumn[column(e)]++
			from := x(float64(column(e))+0.5) - square/2
			low := y(0) + side.sign*(vg.Length(n)*stack+1.4)
			if side.sign < 0 {
				low -= square
			}
			d.square(&c, e.outcome, from, low)
		}
	}
	c.StrokeLine2(draw.LineStyle{Color: d.ink, Width: 0.8}, c.Min.X, y(0), c.Max.X, y(0))
	d.label(c, "calls", c.Min.X-labelGap, y(0)+10, text.XRight)
	if d.belowName != "" {
		d.label(c, d.belowName, c.Min.X-labelGap, y(0)-10, text.XRight)
	}
	for _, s := range d.locked {
		d.label(c, "locked", x(inSeconds(s.from+s.to)/2), c.Max.Y-6, text.XCenter)
	}
}

func (d *pen) square(c *draw.Canvas, o outcome, left, low vg.Length) {
	colour, filled := d.colour(o)
	if filled {
		box(c, colour, left, low, left+square, low+square)
		return
	}
	const half = 0.6 // of the line, which stays within the square
	a, b := vg.Point{X: left + half, Y: low + half}, vg.Point{X: left + square - half, Y: low + square - half}
	c.StrokeLines(draw.LineStyle{Color: colour, Width: 2 * half},
		[]vg.Point{a, {X: b.X, Y: a.Y}, b, {X: a.X, Y: b.Y}, a, {X: b.X, Y: a.Y}})
}

// colour returns how the square of an outcome is drawn.
func (d *pen) colour(o outcome) (colour color.Color, filled bool) {
	switch o {
	case denied:
		return d.denied, false
	case delayed:
		return d.delayed, true
	case charged:
		return d.charged, true
	case returned:
		return d.charged, false
	}
	return d.admitted, true
}

func box(c *draw.Canvas, colour color.Color, x0, y0, x1, y1 vg.Length) {
	c.FillPolygon(colour, []vg.Point{{X: x0, Y: y0}, {X: x1, Y: y0}, {X: x1, Y: y1}, {X: x0, Y: y1}})
}

// meter draws what is in use as an area, and the limit as a line.
func (d *pen) meter(c draw.Canvas, x, y scale, m *meter) {
	full := float64(m.limit)
	line := m.path(x, y, func(units float64) float64 { return units })
	below := m.path(x, y, func(units float64) float64 { return min(units, full) })
	c.FillPolygon(d.area, closed(below, x, y(0)))
	if m.highest() > full {
		colour, _ := d.colour(d.over)
		over := m.path(x, y, func(units float64) float64 { return max(units, full) })
		c.FillPolygon(colour, closed(over, x, y(full)))
	}
	c.StrokeLines(draw.LineStyle{Color: d.admitted, Width: 1}, line)
	c.StrokeLine2(draw.LineStyle{Color: d.ink, Width: 0.8}, c.Min.X, y(0), c.Max.X, y(0))
	c.StrokeLine2(draw.LineStyle{Color: d.ink, Width: 1.2, Dashes: []vg.Length{6, 3}}, c.Min.X, y(full), c.Max.X, y(full))
	d.label(c, fmt.Sprintf("limit %d", m.limit), c.Min.X-labelGap, y(full), text.XRight)
	d.label(c, "0", c.Min.X-labelGap, y(0), text.XRight)
	d.label(c, m.name, c.Min.X-labelGap, y(full/2), text.XRight)
}

// path returns the line of a meter without the points that lie within straight stretches.
func (m *meter) path(x, y scale, clip func(units float64) float64) (points []vg.Point) {
	var a, b level // the last point of the path, and the one that may follow
	for i, l := range m.use {
		l.units = clip(l.units)
		if i > 0 && (i == 1 || !straight(a, b, l)) {
			points = append(points, vg.Point{X: x(inSeconds(b.at)), Y: y(b.units)})
			a = b
		}
		b = l
	}
	return append(points, vg.Point{X: x(inSeconds(b.at)), Y: y(b.units)})
}

// straight reports whether b lies on the line from a to c, and the level does not jump there.
func straight(a, b, c level) bool {
	if a.at == b.at || b.at == c.at {
		return false
	}
	before, after := (b.units-a.units)/inSeconds(b.at-a.at), (c.units-b.units)/inSeconds(c.at-b.at)
	return math.Abs(before-after) < 1e-6
}

// closed returns the area between a path and the level base.
func closed(path []vg.Point, x scale, base vg.Length) []vg.Point {
	return append([]vg.Point{{X: x(0), Y: base}}, append(path, vg.Point{X: x(seconds), Y: base})...)
}

func (d *pen) label(c draw.Canvas, words string, x, y vg.Length, align text.XAlignment) {
	c.FillText(d.style(10, align), vg.Point{X: x, Y: y}, words)
}

func (d *pen) style(size vg.Length, align text.XAlignment) text.Style {
	return text.Style{Color: d.ink, XAlign: align, YAlign: text.YCenter, Handler: plot.DefaultTextHandler,
		Font: font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}}
}

// axis draws the numbers and the name of the time axis below the last part.
func (d *pen) axis(c draw.Canvas) {
	per := (c.Max.X - c.Min.X) / seconds
	for t := 0; t <= seconds; t += 10 {
		d.label(c, fmt.Sprint(t), c.Min.X+vg.Length(t)*per, c.Min.Y-9, text.XCenter)
	}
	d.label(c, "seconds", (c.Min.X+c.Max.X)/2, c.Min.Y-23, text.XCenter)
}

// head draws the title and the legend. Each word of the legend begins at a fixed place, so a viewer's
// other font does not move it into its neighbour.
func (d *pen) head(c draw.Canvas) {
	title := d.style(13, text.XLeft)
	title.Font.Weight = 2 // bold
	c.FillText(title, vg.Point{X: left, Y: c.Max.Y - 16}, d.title)
	x, y := vg.Length(left), c.Max.Y-36
	for _, entry := range d.legend() {
		d.square(&c, entry.outcome, x, y-square/2)
		d.label(c, entry.name, x+square+5, y, text.XLeft)
		x += vg.Length(len(entry.name))*5.4 + 34
	}
}

type legendEntry struct {
	outcome
	name string
}

func (d *pen) legend() []legendEntry {
	entries := []legendEntry{{admitted, "admitted"}}
	switch d.over {
	case delayed:
		entries = append(entries, legendEntry{delayed, "admitted, with a wait"})
	case charged:
		entries = append(entries, legendEntry{charged, "charged by FORCE; debt"}, legendEntry{returned, "given back"})
	}
	return append(entries, legendEntry{denied, "denied"})
}
