package main

import (
	"fmt"
	"strings"
	"time"
)

// goLine returns the call of package throttle that ask makes.
func (s *Spec) goLine(key string) string {
	switch {
	case s.Kind == "all":
		verb := "All"
		if s.Mode == "force" {
			verb = "SettleAll"
		}
		var takes strings.Builder
		for i := range s.Clauses {
			c := &s.Clauses[i]
			fmt.Fprintf(&takes, ",\n\tthrottle.Take{Key: %q, Limit: %s, N: %d}", clauseKey(key, c.Kind, i), c.goLimit(), c.Quantity)
		}
		return fmt.Sprintf("client.%s(ctx%s)", verb, takes.String())
	case s.Mode == "upto":
		return fmt.Sprintf("client.AllowAtMost(ctx, %q, %s, %d)", key, s.goLimit(), s.Quantity)
	case s.Mode == "force":
		return fmt.Sprintf("client.Settle(ctx, %q, %s, %d)", key, s.goLimit(), s.Quantity)
	case s.Mode == "reserve":
		return fmt.Sprintf("client.Reserve(ctx, %q, %s, %d, %s)", key, s.goLimit(), s.Quantity, goTime(s.Time))
	case s.Quantity == 1:
		return fmt.Sprintf("client.Allow(ctx, %q, %s)", key, s.goLimit())
	}
	return fmt.Sprintf("client.AllowN(ctx, %q, %s, %d)", key, s.goLimit(), s.Quantity)
}

// goLimit returns the expression of the limit.
func (s *Spec) goLimit() string {
	switch s.Kind {
	case "throttle":
		text := fmt.Sprintf("throttle.Per(%d, %s)", s.Count, goTime(s.Period))
		if s.Limit != s.Count {
			text += fmt.Sprintf(".Burst(%d)", s.Limit)
		}
		if s.Mode == "lockout" {
			text += fmt.Sprintf(".Lockout(%s)", goTime(s.Time))
		}
		return text
	case "window":
		text := fmt.Sprintf("throttle.Window(%d, %s)", s.Limit, goTime(s.Period))
		if s.Exact {
			text += ".Exact()"
		}
		return text
	case "quota":
		text := fmt.Sprintf("throttle.Quota(%d, %s)", s.Limit, goTime(s.Period))
		if s.Align {
			text += ".Align(0)"
		}
		return text
	}
	return "throttle.Policy()"
}

// goTime returns milliseconds as a Go expression.
func goTime(ms int64) string {
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{{time.Hour, "time.Hour"}, {time.Minute, "time.Minute"}, {time.Second, "time.Second"}, {time.Millisecond, "time.Millisecond"}} {
		if n := time.Duration(ms) * time.Millisecond / unit.length; n*unit.length == time.Duration(ms)*time.Millisecond {
			if n == 1 {
				return unit.name
			}
			return fmt.Sprintf("%d*%s", n, unit.name)
		}
	}
	return "0"
}

// cliLine returns the command as it was sent, for a shell. Words that a shell would change are quoted.
func cliLine(prefix string, words []string) string {
	var line strings.Builder
	line.WriteString(prefix)
	for _, w := range words {
		line.WriteByte(' ')
		if w == "" || strings.Trim(w, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:._-/") != "" {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		line.WriteString(w)
	}
	return line.String()
}

// title describes the limiter in a few words.
func (s *Spec) title() string {
	unit := func(n int64) string {
		if n == 1 {
			return "1 unit"
		}
		return fmt.Sprintf("%d units", n)
	}
	var text string
	switch s.Kind {
	case "throttle":
		text = fmt.Sprintf("burst of %d, then %d per %s", s.Limit, s.Count, span(s.Period))
	case "window":
		text = fmt.Sprintf("at most %s in any %s", unit(s.Limit), span(s.Period))
	case "quota":
		text = fmt.Sprintf("%s per window of %s", unit(s.Limit), span(s.Period))
	case "all":
		var parts []string
		for i := range s.Clauses {
			parts = append(parts, s.Clauses[i].title())
		}
		text = strings.Join(parts, ", and ")
	case "policy":
		text = "policy " + s.Policy
	}
	switch s.Mode {
	case "reserve", "lockout":
		text += fmt.Sprintf(", %s %s", strings.ToUpper(s.Mode), span(s.Time))
	case "upto", "force":
		text += ", " + strings.ToUpper(s.Mode)
	}
	return text
}

// span returns milliseconds as a person would say them: 250 ms, 1.5 s, 1 min.
func span(ms int64) string {
	switch {
	case ms < 1000:
		return fmt.Sprintf("%d ms", ms)
	case ms < 60_000 || ms%60_000 != 0:
		return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.3f", float64(ms)/1000), "0"), ".") + " s"
	}
	return fmt.Sprintf("%d min", ms/60_000)
}
