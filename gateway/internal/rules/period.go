package rules

import (
	"strconv"
	"strings"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Periods of the units. Without a time zone a month has 30 days and a year 365, as envoyproxy/ratelimit has it: windows are
// counted from 1970.
var Periods = map[string]time.Duration{
	"SECOND": time.Second, "MINUTE": time.Minute, "HOUR": time.Hour, "DAY": 24 * time.Hour, "WEEK": 7 * 24 * time.Hour,
	"MONTH": 30 * 24 * time.Hour, "YEAR": 365 * 24 * time.Hour,
}

// periodOf reads a unit: a name, or a time such as 15m, 36h or 90d. It returns 0 if the text is neither.
func periodOf(unit string) time.Duration {
	if named := Periods[strings.ToUpper(unit)]; named > 0 {
		return named
	}
	if days, err := strconv.ParseUint(strings.TrimSuffix(unit, "d"), 10, 16); err == nil && strings.HasSuffix(unit, "d") {
		return time.Duration(days) * Periods["DAY"]
	}
	period, _ := time.ParseDuration(unit)
	return period
}

// reply is the limit in answers. A period without a name is a multiple of the longest unit up to a day that fits; Envoy has
// none for fractions of a second.
func (m *Limit) reply(name string) *pb.RateLimitResponse_RateLimit {
	unit := func(name string) pb.RateLimitResponse_RateLimit_Unit {
		return pb.RateLimitResponse_RateLimit_Unit(pb.RateLimitResponse_RateLimit_Unit_value[name])
	}
	r := &pb.RateLimitResponse_RateLimit{RequestsPerUnit: uint32(m.Units), Name: name, Unit: unit(strings.ToUpper(m.Unit))}
	if r.Unit != 0 || m.Unit == "" {
		return r
	}
	for _, name := range []string{"DAY", "HOUR", "MINUTE", "SECOND"} {
		if times := m.Period / Periods[name]; m.Period%Periods[name] == 0 {
			if r.Unit = unit(name); times > 1 {
				r.UnitMultiplier = wrapperspb.UInt32(uint32(times))
			}
			break
		}
	}
	return r
}

// WindowEnd returns when the fixed window at a time ends.
func (m *Limit) WindowEnd(at time.Time) time.Time {
	if m.TimeZone.Location == nil {
		return time.Unix(0, at.UnixNano()).Add(m.Period - time.Duration(at.UnixNano())%m.Period)
	}
	zone := m.TimeZone.Location
	year, month, day := at.In(zone).Date()
	if m.Period != Periods["MONTH"] {
		return time.Date(year, month, day+1, 0, 0, 0, 0, zone)
	}
	for ; ; month++ {
		last := time.Date(year, month+1, 0, 0, 0, 0, 0, zone).Day()
		if begin := time.Date(year, month, min(max(m.StartsOn, 1), last), 0, 0, 0, 0, zone); begin.After(at) {
			return begin
		}
	}
}
