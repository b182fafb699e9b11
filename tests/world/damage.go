package world

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// content is what a key may hold: a string, fields of a hash with their values, or members of a sorted set with their scores.
type content struct {
	command string // that makes it: SET, HSET or ZADD
	text    string
	pairs   []pair
}

type pair struct{ name, value string }

func (c *content) put(name, value string) {
	c.drop(name)
	c.pairs = append(c.pairs, pair{name, value})
}

func (c *content) drop(name string) {
	c.pairs = slices.DeleteFunc(c.pairs, func(p pair) bool { return p.name == name })
}

// Damaged makes the calls by which a key comes to hold what other programs may have written: mostly what a limiter might have
// written by an instant, in µs, and then up to three changes that no limiter makes. The kind says what most callers take it for.
func (g *Generator) Damaged(key string, kind byte, now int64) [][]string {
	if g.IntN(20) == 0 {
		kind = Pick[byte](g.Rand, 't', 'w', 'q', 'l')
	}
	c := &content{command: "ZADD"}
	switch kind {
	case 't':
		c.command = "HSET"
		g.cells(c, now)
	case 'q':
		c.command, c.text = "SET", Pick(g.Rand, g.count(now), "7")+"@"+Pick(g.Rand, g.count(now), text(now*1000+g.Int64N(1e11)))
	case 'w':
		g.log(c, now)
	default:
		g.leases(c, now)
	}
	for range Pick(g.Rand, 0, 1, 1, 1, 2, 3) {
		g.damage(c, now)
	}
	words := []string{c.command, key}
	for _, p := range c.pairs {
		if c.command == "ZADD" {
			p.name, p.value = p.value, p.name
		}
		words = append(words, p.name, p.value)
	}
	if c.command == "SET" {
		words = append(words, c.text)
	}
	return [][]string{{"DEL", key}, words}
}

// count writes a number that a key may hold: small, at an end of a range, beyond it, or a time.
func (g *Generator) count(now int64) string {
	return Pick(g.Rand, text(g.IntN(9)), text(g.IntN(9)), "-1", "", "x", "007", "1.5", "999999999999", "1000000000000", "1000000000001", "3153600000", "-3153599999999999999",
		"9007199254740992", "9007199254740993", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "nan", text(now*1000), text(now*1000+g.Int64N(1e12)))
}

// cells adds up to three cells of rates, and lockouts.
func (g *Generator) cells(c *content, now int64) {
	for cell := range Pick(g.Rand, 1, 1, 2, 3) {
		c.put(text(4*cell), text(now*1000+g.Int64N(6e10)))
		if c.put(text(4*cell+1), Pick(g.Rand, "2", "60", "-1", "-1500000000")); g.IntN(2) == 0 {
			c.put(text(4*cell+2), text(g.IntN(7)))
			c.put(text(4*cell+3), Pick(g.Rand, "7", "30", "1000000000000"))
		}
		if g.IntN(4) == 0 {
			c.put(text(128+cell), text(now*1000+g.Int64N(6e10)))
		}
	}
}

// log adds entries of a sliding window, the newest first.
func (g *Generator) log(c *content, now int64) {
	total := Pick(g.Rand, 1000+g.Uint64N(1000), g.Uint64N(20), math.MaxUint64-g.Uint64N(20))
	for n := range 1 + g.IntN(6) {
		units, member := g.Uint64N(9), "\x01"+strconv.FormatUint(total, 36)
		if units > 1 {
			member += ":" + strconv.FormatUint(units, 36)
		}
		if units > 2 && n == 0 && g.IntN(3) == 0 {
			member += ":" + strconv.FormatUint(g.Uint64N(9), 36)
		}
		c.put(member, text(-now))
		total -= units
		now -= 1 + g.Int64N(Pick[int64](g.Rand, 3, 1e6, 1e8))
	}
}

// leases adds leases, of which some have several slots, and their sum. Some have lapsed; once in a while more than a call removes.
func (g *Generator) leases(c *content, now int64) {
	several, extra, sum := g.IntN(4), false, int64(0)
	many := g.IntN(40) == 0
	for n := range Pick(g.Rand, 1, 2, 3, 5) {
		id := g.id()
		if many {
			for i := range 130 {
				c.put(fmt.Sprintf("\x02%d-%03d", n, i), text(int64(1000*i)-now-g.Int64N(1000)-Pick[int64](g.Rand, -1e9, 1e6)))
			}
		}
		c.put("\x02"+id, text(2e7-now-g.Int64N(8e7)))
		if g.IntN(4) >= several {
			continue
		}
		slots := Pick(g.Rand, 2, 2, 3, 5, int64(1e12))
		c.put("\x03"+id, text(slots)) // an id that comes twice makes the sum too great
		extra, sum = true, sum+slots-2
	}
	if extra {
		c.put("\x04", text(sum))
	}
}

// damage makes a change that no limiter makes.
func (g *Generator) damage(c *content, now int64) {
	if c.command == "SET" {
		c.text = g.torn(c.text)
		return
	}
	p, n := c.pairs[g.IntN(len(c.pairs))], g.IntN(8)
	old, _ := strconv.ParseFloat(p.value, 64)
	switch hash := c.command == "HSET"; {
	case n == 0 && len(c.pairs) > 1:
		c.drop(p.name)
	case n < 3 && hash:
		c.put(Pick(g.Rand, "", "x", "0128", "00", "-1", "160", text(g.IntN(12)), text(128+g.IntN(32))), g.count(now))
	case hash:
		c.put(p.name, Pick(g.Rand, g.count(now), g.torn(p.value)))
	case n < 3:
		c.drop(p.name)
		c.put(g.torn(p.name), p.value)
	case n < 5:
		c.put(Pick(g.Rand, "", "\x01", "\x02", "\x03", "\x04", "\x03", "\x04", "\x05", "x")+
			Pick(g.Rand, "", "", g.id(), g.id(), g.id(), g.torn(p.name), strings.Repeat("x", 512+g.IntN(3))), g.score(old, now))
	default:
		c.put(p.name, g.score(old, now))
	}
}

// score draws the score of a member: a time, a number of slots, or one at an end of a range or beyond it.
func (g *Generator) score(old float64, now int64) string {
	at := -float64(now)
	score := Pick(g.Rand, 0, math.Copysign(0, -1), -1, 1, 2, 3, 5, 1e12, 1e12+1, 1<<53, 1<<53+2, -(1 << 53), -(1<<53 + 2), 1e300, -1e300, math.Inf(1), math.Inf(-1), 0.5, -0.5,
		old+1, old-1, old+0.5, -old, old*2, at, at+1, at-1, at-float64(g.Int64N(1e8)), at+float64(g.Int64N(1e8)))
	return strconv.FormatFloat(score, 'g', -1, 64)
}

// torn changes a byte of a text, cuts it, or doubles its end.
func (g *Generator) torn(text string) string {
	if text == "" {
		return Pick(g.Rand, "x", "\x02", "\x04")
	}
	i := g.IntN(len(text))
	return text[:i] + Pick(g.Rand, "", text[i:]+text[i:], text[min(i+1, len(text)):], string([]byte{byte(g.IntN(256))})+text[i+1:])
}
