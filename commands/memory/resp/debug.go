package resp

import (
	"reflect"
	"strconv"
	"strings"
	"time"

	"gothrottle/commands/memory"
)

// debugs is what DEBUG does by its first word: see Options.Debug.
var debugs = map[string]func(c *conn, words []string) error{
	"FAULT": func(c *conn, words []string) (err error) {
		c.Change(func(f *Faults) { err = f.set(words) })
		return err
	},
	"STALL":     func(c *conn, words []string) error { return with(words, time.ParseDuration, c.Stall) },
	"ADVANCE":   func(c *conn, words []string) error { return with(words, time.ParseDuration, c.Advance) },
	"CUT":       func(c *conn, _ []string) error { c.Cut(); return nil },
	"CUTBEFORE": func(c *conn, words []string) error { return with(words, strconv.Atoi, c.CutBefore) },
	"CUTAFTER":  func(c *conn, words []string) error { return with(words, strconv.Atoi, c.CutAfter) },
	"HALFOPEN":  func(c *conn, _ []string) error { c.HalfOpen(); return nil },
	"RESTART":   func(c *conn, _ []string) error { c.Restart(); return nil },
	"PROMOTE": func(c *conn, _ []string) error {
		if c.watches == nil {
			return memory.Error("ERR PROMOTE is for a Sentinel")
		}
		c.watches.Promote(c.watches.copies()[0])
		return nil
	},
}

// with calls f with what the only word says.
func with[T any](words []string, parse func(string) (T, error), f func(T)) error {
	value, err := parse(strings.Join(words, " "))
	if err == nil {
		f(value)
	}
	return err
}

// set sets a fault by the name of its field, as in SILENT, SLOW 10ms or ERROR LOADING ..; NONE ends all.
func (f *Faults) set(words []string) (err error) {
	name, value := word(words, 0), ""
	if name == "NONE" {
		*f = Faults{}
		return nil
	}
	if len(words) > 1 {
		value = strings.Join(words[1:], " ")
	}
	field := reflect.ValueOf(f).Elem().FieldByNameFunc(func(s string) bool { return strings.ToUpper(s) == name })
	switch {
	case field.IsValid() && field.Type() == reflect.TypeFor[time.Duration]():
		return with(words[1:], time.ParseDuration, func(d time.Duration) { field.SetInt(int64(d)) })
	case field.IsValid() && field.Kind() == reflect.Bool:
		field.SetBool(true)
	case field.IsValid() && field.Kind() == reflect.String:
		field.SetString(value)
	default:
		return memory.Error("ERR there is no fault " + name)
	}
	return nil
}

// debug runs DEBUG, whose connection is from then on free of faults.
func (c *conn) debug(words []string) any {
	c.locked(func() { c.conns[c] = false })
	c.free.Store(true)
	run := debugs[word(words, 0)]
	if run == nil {
		return memory.Error("ERR unknown subcommand. Try those in commands/memory/resp/debug.go.")
	}
	if err := run(c, words[1:]); err != nil {
		return memory.Error("ERR " + strings.TrimPrefix(err.Error(), "ERR "))
	}
	return ok
}
