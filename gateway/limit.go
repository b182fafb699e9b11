package main

import (
	"cmp"
	"strings"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"go.yaml.in/yaml/v3"
)

// periods of the units. A month has 30 days and a year 365, as envoyproxy/ratelimit has it: windows are counted from 1970.
var periods = map[string]time.Duration{
	"SECOND": time.Second, "MINUTE": time.Minute, "HOUR": time.Hour, "DAY": 24 * time.Hour, "WEEK": 7 * 24 * time.Hour,
	"MONTH": 30 * 24 * time.Hour, "YEAR": 365 * 24 * time.Hour,
}

func (l *loader) loadLimit(at *yaml.Node, rule string, tag tagging) *limit {
	m := &limit{limitLevel: decode[limitLevel](l, at, rule), path: rule, place: l.place(at)}
	unit := strings.ToUpper(m.Unit)
	m.period, m.unit = periods[unit], pb.RateLimitResponse_RateLimit_Unit(pb.RateLimitResponse_RateLimit_Unit_value[unit])
	if wrong := m.mistake(m.period, tag); wrong != "" {
		l.fail(at, rule, "%s", wrong)
	}
	for i := range m.Replaces {
		other := decode[replacesLevel](l, &m.Replaces[i], rule).Name
		if other == "" || other == m.Name {
			l.fail(&m.Replaces[i], rule, "replaces needs the name of another rule, not %q", other)
		}
		m.replaces = append(m.replaces, other)
	}
	if m.units = int64(m.RequestsPerUnit); m.Concurrency != nil {
		m.Algorithm, m.units = concurrency, int64(*m.Concurrency)
	}
	m.Algorithm, m.OnFailure = cmp.Or(m.Algorithm, fixedWindow), cmp.Or(m.OnFailure, failOpen)
	m.charge = m.Excess == "charge" || m.Excess == "" && m.Algorithm == fixedWindow && tag == tagNone
	m.reply = &pb.RateLimitResponse_RateLimit{RequestsPerUnit: uint32(m.units), Unit: m.unit, Name: m.Name}
	l.limits = append(l.limits, m)
	return m
}

// mistake says what does not fit together.
func (m *limitLevel) mistake(unit time.Duration, tag tagging) string {
	slots, charge := m.Concurrency != nil, m.Excess == "charge"
	switch {
	case slots && (m.Unit != "" || m.RequestsPerUnit > 0 || m.Algorithm != "" || m.Unlimited):
		return "concurrency is used alone or with hold: it has no unit, requests_per_unit or algorithm"
	case slots && *m.Concurrency == 0:
		return "concurrency is at least 1"
	case m.Unlimited && unit > 0:
		return "a rule that is unlimited has no unit"
	case !slots && !m.Unlimited && unit == 0:
		return "invalid unit '" + m.Unit + "': second, minute, hour, day, week, month or year"
	case (m.Burst != nil || m.Lockout != nil) && m.Algorithm != gcra:
		return "burst and lockout need 'algorithm: gcra'"
	case or(m.Burst, 1) == 0:
		return "burst is at least 1"
	case m.Hold != nil && !slots:
		return "hold needs concurrency"
	case !fits(m.Lockout) || !fits(m.Hold):
		return "lockout and hold are times between 1ms and 10 years: write 90s, 15m or 1h30m"
	case charge && (slots || m.Lockout != nil || tag != tagNone):
		return "'excess: charge' cannot be combined with concurrency, a lockout or a hash_tag"
	case m.Lockout != nil && tag != tagNone:
		return "a lockout cannot be combined with a hash_tag"
	}
	return ""
}

// fits says whether the server takes a time.
func fits(d *time.Duration) bool {
	return d == nil || *d >= time.Millisecond && *d%time.Millisecond == 0 && *d <= 10*365*24*time.Hour
}

func or[T any](value *T, otherwise T) T {
	if value == nil {
		return otherwise
	}
	return *value
}
