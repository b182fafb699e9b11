package main

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

var colours = map[int]color.RGBA{
	theFloor: {0x9a, 0xa5, 0xb1, 0xff},
	ours:     {0x1f, 0x77, 0xb4, 0xff},
	rival:    {0xe8, 0x8b, 0x3a, 0xff},
	peer:     {0x8c, 0x5f, 0xb0, 0xff},
}

var groups = []struct {
	by   int
	name string
}{{ours, "gothrottle"}, {theFloor, "the floor"}, {rival, "by other means"}, {peer, "another module"}}

var (
	ink  = color.RGBA{0x24, 0x29, 0x2f, 0xff}
	pale = color.RGBA{0xe4, 0xe8, 0xec, 0xff}
)

// plots writes the pictures of the report.
func (r *results) plots(folder string) error {
	cpu := newChart("Server CPU per op", "µs per op, 32-deep pipeline; whiskers: least and most of the rounds", "%.2f")
	latency := newChart("Latency at 50 connections, no pipelining", "µs: median, 99 % and 99.9 %, medians of the rounds", "%.0f")
	memory := newChart("Memory per key", "bytes, keys of 13 bytes; windows hold 95 calls", "%.0f")
	for _, c := range r.list {
		s := r.spread(c.name, cpuOf)
		cpu.add(c, s.median, s.min, s.max)
		if p50 := r.spread(c.name, p50Of).median; p50 > 0 && c.calls == 0 {
			latency.add(c, p50, r.spread(c.name, p99Of).median, r.spread(c.name, p999Of).median)
		}
		if bytes, ok := r.memory[c.name]; ok {
			memory.add(c, bytes, bytes, bytes)
		}
	}
	if err := cpu.save(filepath.Join(folder, "bench-cpu.svg"), false); err != nil {
		return err
	}
	if err := latency.save(filepath.Join(folder, "bench-latency.svg"), true); err != nil {
		return err
	}
	return memory.save(filepath.Join(folder, "bench-memory.svg"), false)
}

// A chart has a line for each contender, with three values: for bars the length and the
// ends of a whisker, for dots the places of three.
type chart struct {
	title, axis, format string
	lines               []chartLine
}

type chartLine struct {
	name   string
	by     int
	values [3]float64
}

func newChart(title, axis, format string) *chart {
	return &chart{title: title, axis: axis, format: format}
}

func (c *chart) add(who *contender, a, b, d float64) {
	c.lines = append(c.lines, chartLine{who.name, who.by, [3]float64{a, b, d}})
}

const (
	width      = 780 // all in points
	lineHeight = 21
	nameWidth  = 210 // with room for a viewer's wider font
	margin     = 12
)

func (c *chart) save(file string, dots bool) error {
	p := plot.New()
	p.Title.Text = c.title
	p.Title.Padding = 30 // the legend is there
	p.Title.TextStyle = style(15)
	p.Title.TextStyle.Font.Weight = 2 // bold
	p.Title.TextStyle.XAlign, p.Title.TextStyle.YAlign = text.XCenter, text.YTop
	p.X.Label.Text = c.axis
	p.X.Label.Padding = 6
	p.X.Label.TextStyle = style(11)
	p.X.Label.TextStyle.XAlign = text.XCenter
	p.X.Tick.Label = style(11)
	p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = text.XCenter, text.YTop
	p.X.Tick.Marker = plot.TickerFunc(ticks)
	p.X.LineStyle.Color, p.X.Tick.LineStyle.Color = pale, pale
	p.HideY()

	grid := plotter.NewGrid()
	grid.Horizontal.Width = 0
	grid.Vertical.Color = pale
	p.Add(grid)

	// The first line is at the top.
	lines := slices.Clone(c.lines)
	slices.Reverse(lines)
	longest, end := 0.0, 0.0
	for _, l := range lines {
		longest, end = max(longest, l.values[0]), max(end, slices.Max(l.values[:]))
	}
	if !dots {
		end = min(end, 1.4*longest) // one bad round must not make all bars short
	}
	p.X.Min, p.X.Max = 0, end*1.1
	if dots {
		p.X.Max = end * 1.3 // for three numbers
	}
	p.Y.Min, p.Y.Max = -0.7, float64(len(lines))-0.3

	for _, group := range groups {
		if dots {
			addDots(p, lines, group.by)
		} else if err := addBars(p, lines, group.by, end); err != nil {
			return err
		}
	}
	p.Add(words{lines, c.format, dots, end})
	return write(p, vg.Length(lineHeight*len(lines)+120), file)
}

// ticks are the usual ones, without zeros behind the point.
func ticks(from, to float64) []plot.Tick {
	marks := plot.DefaultTicks{}.Ticks(from, to)
	for i := range marks {
		if marks[i].Label != "" {
			marks[i].Label = strconv.FormatFloat(math.Round(marks[i].Value*1e6)/1e6, 'f', -1, 64)
		}
	}
	return marks
}

func style(size vg.Length) text.Style {
	return text.Style{Color: ink, Font: font.Font{Typeface: "Liberation", Variant: "Sans", Size: size},
		Handler: plot.DefaultTextHandler}
}

func addBars(p *plot.Plot, lines []chartLine, by int, end float64) error {
	values := make(plotter.Values, len(lines))
	var whiskers rangeBars
	for i, l := range lines {
		if l.by == by {
			values[i] = l.values[0]
			if l.values[2] > l.values[1] {
				whiskers = append(whiskers, rangeBar{l.values[1], min(l.values[2], end), float64(i)})
			}
		}
	}
	if slices.Max(values) == 0 {
		return nil
	}
	bars, err := plotter.NewBarChart(values, 13)
	if err != nil {
		return err
	}
	bars.Horizontal = true
	bars.Color = colours[by]
	bars.LineStyle.Width = 0
	p.Add(bars, whiskers)
	return nil
}

func addDots(p *plot.Plot, lines []chartLine, by int) {
	shapes := []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}}
	var points [3]plotter.XYs
	for i, l := range lines {
		if l.by != by {
			continue
		}
		span := &plotter.Line{XYs: plotter.XYs{{X: l.values[0], Y: float64(i)}, {X: l.values[2], Y: float64(i)}},
			LineStyle: draw.LineStyle{Color: pale, Width: 4}}
		p.Add(span)
		for k := range points {
			points[k] = append(points[k], plotter.XY{X: l.values[k], Y: float64(i)})
		}
	}
	for k := range points {
		dots := &plotter.Scatter{XYs: points[k],
			GlyphStyle: draw.GlyphStyle{Color: colours[by], Radius: 4, Shape: shapes[k]}}
		if len(points[k]) > 0 {
			p.Add(dots)
		}
	}
}

// words are the names to the left of the lines, the numbers to the right and the legend
// above. They begin at fixed places, so that another font does not move them into the bars.
type words struct {
	lines  []chartLine
	format string
	all    bool // all three numbers, not the first alone
	end    float64
}

// Plot writes them.
func (w words) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	name, number := style(11), style(10)
	name.YAlign, number.YAlign = text.YCenter, text.YCenter
	left := c.Min.X
	for _, group := range groups {
		if !slices.ContainsFunc(w.lines, func(l chartLine) bool { return l.by == group.by }) {
			continue
		}
		at := vg.Point{X: left, Y: c.Max.Y + 16}
		c.FillPolygon(colours[group.by], []vg.Point{{X: at.X, Y: at.Y - 6}, {X: at.X + 10, Y: at.Y - 6},
			{X: at.X + 10, Y: at.Y + 4}, {X: at.X, Y: at.Y + 4}})
		c.FillText(name, vg.Point{X: at.X + 15, Y: at.Y}, group.name)
		left += 130
	}
	for i, l := range w.lines {
		at := y(float64(i))
		c.FillText(name, vg.Point{X: c.Min.X - nameWidth, Y: at}, l.name)
		label := fmt.Sprintf(w.format, l.values[0])
		if w.all {
			label = fmt.Sprintf(w.format+" · "+w.format+" · "+w.format, l.values[0], l.values[1], l.values[2])
		}
		c.FillText(number, vg.Point{X: x(min(w.end, slices.Max(l.values[:]))) + 6, Y: at}, label)
	}
}

// rangeBars are thin lines from the least to the greatest value.
type rangeBars []rangeBar

type rangeBar struct{ from, to, y float64 }

// Plot draws them.
func (w rangeBars) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	style := draw.LineStyle{Color: ink, Width: 1}
	for _, bar := range w {
		c.StrokeLine2(style, x(bar.from), y(bar.y), x(bar.to), y(bar.y))
		for _, end := range []float64{bar.from, bar.to} {
			c.StrokeLine2(style, x(end), y(bar.y)-3, x(end), y(bar.y)+3)
		}
	}
}

// write makes the file, in fonts that any viewer has one of.
func write(p *plot.Plot, height vg.Length, file string) error {
	canvas := vgsvg.New(width, height)
	whole := draw.New(canvas)
	whole.SetColor(color.White)
	whole.Fill(whole.Rectangle.Path())
	p.Draw(draw.Crop(whole, nameWidth+margin, -margin, margin, -margin))
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return err
	}
	return os.WriteFile(file, bytes.ReplaceAll(svg.Bytes(), []byte("font-family:Liberation Sans;"),
		[]byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif;")), 0o644)
}
