package main

import "fmt"

// Word is one integer of a reply, with its name and its meaning in words.
type Word struct {
	Name  string `json:"name"`
	Value int64  `json:"value"`
	Says  string `json:"says"`
}

// inWords explains a reply. The times of the reply are milliseconds.
func (s *Spec) inWords(r Reply) []Word {
	i := r.Ints
	if len(i) < 5 {
		return nil
	}
	said := []Word{
		{"limited", i[0], pick(i[0] == 0, "admitted", "denied")},
		{"limit", i[1], units(i[1]) + s.limitInWords()},
		{"remaining", i[2], units(i[2]) + " left after this call"},
		{"retry_after", i[3], retryInWords(i[0], i[3])},
		{"reset_after", i[4], pick(i[4] == 0, "nothing is in use", "nothing is in use after "+span(i[4]))},
	}
	if len(i) > 5 {
		said = append(said, s.sixth(i[5]))
	}
	return said
}

func (s *Spec) limitInWords() string {
	switch s.Kind {
	case "window":
		return " in any " + span(s.Period)
	case "quota":
		return " per window"
	case "all", "policy":
		return " of the limiter that decides"
	}
	return " at once"
}

func retryInWords(limited, retry int64) string {
	switch {
	case limited == 0 && retry < 0:
		return "no need to wait"
	case retry < 0:
		return "never: the quantity is above the limit"
	case limited == 0:
		return "one more unit after " + span(retry)
	}
	return "the same call is admitted after " + span(retry)
}

// sixth explains the integer that some calls add.
func (s *Spec) sixth(n int64) Word {
	switch {
	case s.Kind == "all" || s.Kind == "policy":
		return Word{"index", n, fmt.Sprintf("limiter %d decides", n+1)}
	case s.Mode == "reserve":
		return Word{"wait", n, pick(n < 0, "no slot in time", pick(n == 0, "act now", "act after "+span(n)))}
	}
	return Word{"granted", n, units(n) + " taken"}
}

func units(n int64) string { return fmt.Sprintf("%d %s", n, pick(n == 1, "unit", "units")) }

func pick(condition bool, yes, no string) string {
	if condition {
		return yes
	}
	return no
}
