package main

import (
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
	f := l.fields(at, rule, limitKeys)
	unit := strings.ToUpper(l.text(f["unit"]))
	m := &limit{
		path: rule, place: strings.TrimSuffix(l.place(at), ": "), unlimited: value[bool](l, f["unlimited"], rule), name: l.text(f["name"]),
		units: int64(value[uint32](l, f["requests_per_unit"], rule)), period: periods[unit], algorithm: fixedWindow, failure: failOpen,
		unit: pb.RateLimitResponse_RateLimit_Unit(pb.RateLimitResponse_RateLimit_Unit_value[unit]),
	}
	switch {
	case f["concurrency"] != nil:
		l.loadConcurrency(m, f, at)
	case m.unlimited && m.period > 0:
		l.fail(f["unit"], rule, "a rule that is unlimited has no unit")
	case !m.unlimited && m.period == 0:
		l.fail(at, rule, "invalid unit '%s': second, minute, hour, day, week, month or year", strings.ToLower(unit))
	}
	l.loadOurs(m, f, at, tag)
	for _, r := range l.items(f["replaces"], rule) {
		other := l.text(l.fields(r, rule, replacesKeys)["name"])
		if other == "" || other == m.name {
			l.fail(r, rule, "replaces needs the name of another rule, not %q", other)
		}
		m.replaces = append(m.replaces, other)
	}
	m.reply = &pb.RateLimitResponse_RateLimit{RequestsPerUnit: uint32(m.units), Unit: m.unit, Name: m.name}
	l.limits = append(l.limits, m)
	return m
}

func (l *loader) loadConcurrency(m *limit, f map[string]*yaml.Node, at *yaml.Node) {
	m.algorithm, m.hold = concurrency, time.Minute
	if f["unit"] != nil || f["requests_per_unit"] != nil || f["algorithm"] != nil || m.unlimited {
		l.fail(at, m.path, "concurrency is used alone or with hold: it has no unit, requests_per_unit or algorithm")
	}
	if m.units = int64(value[uint32](l, f["concurrency"], m.path)); m.units == 0 {
		l.fail(at, m.path, "concurrency is at least 1")
	}
	if f["hold"] != nil {
		m.hold = l.duration(f["hold"], m.path)
	}
}

// loadOurs reads what envoyproxy/ratelimit does not have.
func (l *loader) loadOurs(m *limit, f map[string]*yaml.Node, at *yaml.Node, tag tagging) {
	if f["algorithm"] != nil {
		m.algorithm = oneOf(l, f["algorithm"], m.path, fixedWindow, slidingWindow, gcra)
	}
	if f["on_failure"] != nil {
		m.failure = oneOf(l, f["on_failure"], m.path, failOpen, failClosed, failLocal)
	}
	m.burst = int64(value[uint32](l, f["burst"], m.path))
	if f["lockout"] != nil {
		m.lockout = l.duration(f["lockout"], m.path)
	}
	m.charge = m.algorithm == fixedWindow && tag == tagNone
	if f["excess"] != nil {
		m.charge = oneOf(l, f["excess"], m.path, "charge", "refuse") == "charge"
	}
	switch {
	case (f["burst"] != nil || m.lockout > 0) && m.algorithm != gcra:
		l.fail(at, m.path, "burst and lockout need 'algorithm: gcra'")
	case f["hold"] != nil && m.algorithm != concurrency:
		l.fail(at, m.path, "hold needs concurrency")
	case m.charge && m.algorithm == concurrency, m.charge && m.lockout > 0, m.charge && tag != tagNone:
		l.fail(at, m.path, "'excess: charge' cannot be combined with concurrency, a lockout or a hash_tag")
	case m.lockout > 0 && tag != tagNone:
		l.fail(at, m.path, "a lockout cannot be combined with a hash_tag")
	case m.algorithm == gcra && f["burst"] != nil && m.burst == 0:
		l.fail(at, m.path, "burst is at least 1")
	}
}
