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
}{{ours, "gothrottle"}, {theFloor, "no limiter"}, {rival, "other limiters"}, {peer, "another module"}}

var (
	ink  = color.RGBA{0x24, 0x29, 0x2f, 0xff}
	pale = color.RGBA{0xe4, 0xe8, 0xec, 0xff}
)

// few are the rows of the small plot, and what the plot calls them.
func (r *results) few() (names, labels []string) {
	names = []string{"GO.THROTTLE", "GO.THROTTLE denied", "GO.WINDOW 100", "GO.QUOTA",
		"GCRA in Lua", "zset window in Lua", "zset window by MULTI"}
	labels = []string{"GO.THROTTLE, admitted", "GO.THROTTLE, denied", "GO.WINDOW, limit 100", "GO.QUOTA",
		"GCRA as a Lua script", "sliding window as a Lua script", "sliding window by MULTI"}
	last, label := "INCR + EXPIRE in Lua", "fixed window as a Lua script"
	for _, c := range r.list {
		if c.by == peer && c.expect == admitted {
			last, label = c.name, c.name
		}
	}
	return append(names, last), append(labels, label)
}

// plots writes the plots of the first server: bench-cpu.svg with the few rows that most
// readers compare, and three plots of all rows.
func (r *results) plots(folder string) error {
	on := r.on[0]
	whiskers := fmt.Sprintf("; whiskers: least and most of %d rounds", r.rounds())
	few := newChart("Server CPU per call, "+on.name, "microseconds"+whiskers, "%.2f")
	cpu := newChart("Server CPU per op, "+on.name, "µs per op, 32-deep pipeline"+whiskers, "%.2f")
	latency := newChart("Latency at 50 connections, no pipelining, "+on.name, "µs: median, 99 % and 99.9 %, medians of the rounds", "%.0f")
	memory := newChart("Memory per key, "+on.name, "bytes, keys of 13 bytes; windows hold 95 calls", "%.0f")
	names, labels := r.few()
	for _, c := range r.list {
		s := on.spread(c.name, cpuOf)
		cpu.add(c.name, c.by, s.median, s.min, s.max)
		if p50 := on.spread(c.name, p50Of).median; p50 > 0 && c.calls == 0 {
			latency.add(c.name, c.by, p50, on.spread(c.name, p99Of).median, on.spread(c.name, p999Of).median)
		}
		if bytes, ok := on.memory[c.name]; ok {
			memory.add(c.name, c.by, bytes, bytes, bytes)
		}
	}
	for i, name := range names {
		j := slices.IndexFunc(r.list, func(c *contender) bool { return c.name == name })
		if s := on.spread(name, cpuOf); j >= 0 {
			few.add(labels[i], r.list[j].by, s.median, s.min, s.max)
		}
	}
	for _, plot := range []struct {
		chart *chart
		file  string
		dots  bool
	}{{few, "bench-cpu.svg", false}, {cpu, "bench-cpu-all.svg", false}, {latency, "bench-latency.svg", true}, {memory, "bench-memory.svg", false}} {
		if len(plot.chart.lines) == 0 {
			continue // a run of some rows only
		}
		if err := plot.chart.save(filepath.Join(folder, plot.file), plot.dots); err != nil {
			return err
		}
	}
	return nil
}

// A chart has a line for each contender. A line has three values: the length of a bar and
// the ends of its whisker, or the places of three dots.
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

func (c *chart) add(name string, by int, a, b, d float64) {
	c.lines = append(c.lines, chartLine{name, by, [3]float64{a, b, d}})
}

const (
	// All in points.
	width      = 780
	lineHeight = 21
	nameWidth  = 210 // wide enough for a viewer's wider font
	margin     = 12
)

func (c *chart) save(file string, dots bool) error {
	p := plot.New()
	p.Title.Text = c.title
	p.Title.Padding = 30 // room for the legend
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
		end = min(end, 1.4*longest) // one disturbed round must not shorten all bars
	}
	p.X.Min, p.X.Max = 0, end*1.1
	if dots {
		p.X.Max = end * 1.3 // room for three numbers
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

// ticks returns gonum's ticks, their labels without trailing zeros.
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

// words are the names left of the lines, the numbers right of them, and the legend above.
// Each begins at a fixed place, so a viewer's other font does not move it into the bars.
type words struct {
	lines  []chartLine
	format string
	all    bool // all three numbers, not only the first
	end    float64
}

// Plot draws the words.
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

// rangeBars are whiskers: thin lines from the least to the greatest value.
type rangeBars []rangeBar

type rangeBar struct{ from, to, y float64 }

// Plot draws the whiskers.
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

// write writes the file. It names several fonts, so that every viewer has one of them. The
// background is white, so that dark pages show the plot well, too.
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
