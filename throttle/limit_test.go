package throttle_test

import (
	"context"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gothrottle/throttle"
	"gothrottle/throttle/throttletest"
)

// Days end at midnight of their zone, but for windows around a change of its clocks. No day of such a change admits more than
// twice its limit.
func TestAlignedQuota_inZones(t *testing.T) {
	for _, name := range []string{"Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu"} {
		zone := must(time.LoadLocation(name))
		bubble(t, func(t *testing.T, c *throttle.Client, s *throttletest.Server) {
			day, admitted := c.Quota("day", 3, 24*time.Hour, throttle.In(zone)), map[string]int64{}
			for range 400 * 8 {
				now := s.Now().In(zone)
				r, limit := must(day.Allow(background, "bob")), int64(3)
				_, before := now.AddDate(0, 0, -1).Zone()
				_, after := now.AddDate(0, 0, 2).Zone()
				if before != after {
					limit = 6
				} else if r.ResetAfter > 0 {
					require.Equal(t, "00:00:00", now.Add(r.ResetAfter).Round(time.Second).Format(time.TimeOnly), "%s: the day of %v", name, now)
				}
				admitted[now.Format(time.DateOnly)] += r.Granted
				require.LessOrEqual(t, admitted[now.Format(time.DateOnly)], limit, "%s: %v", name, now)
				s.Advance(3 * time.Hour)
			}
		})
	}
}

// A billing month ends at the next midnight, in its zone, of its day or of the last day of a month that is shorter. Up to the
// 28th it may be off by a change of clocks.
func TestMonth_onAnyDay(t *testing.T) {
	for _, name := range []string{"UTC", "Europe/Berlin", "America/Los_Angeles", "Pacific/Kiritimati"} {
		zone := must(time.LoadLocation(name))
		bubble(t, func(t *testing.T, c *throttle.Client, s *throttletest.Server) {
			random := rand.New(rand.NewPCG(1, 2))
			for i := range 2000 {
				s.Advance(time.Duration(random.Int64N(int64(20 * 24 * time.Hour))).Truncate(time.Minute))
				day, now, options := 1+random.IntN(31), s.Now().In(zone), []throttle.Option{}
				if name != "UTC" {
					options = append(options, throttle.In(zone))
				}
				r := must(c.Quota("bill", 3, throttle.Month, append(options, throttle.OnDay(day))...).Allow(background, strconv.Itoa(i)))
				end := time.Date(now.Year(), now.Month(), now.Day()+1, 0, 0, 0, 0, zone)
				for end.Day() != day && (end.Day() > day || end.AddDate(0, 0, 1).Day() != 1) {
					end = time.Date(end.Year(), end.Month(), end.Day()+1, 0, 0, 0, 0, zone)
				}
				_, east := now.Zone()
				_, then := end.Zone()
				if day <= 28 && east != then {
					continue
				}
				require.WithinDuration(t, end, now.Add(r.ResetAfter), time.Second, "day %d of %s at %v", day, name, now)
			}
		})
	}
}

// Limits from data meet at the keys of their name, whatever their number, and share its options. A limit that makes no sense, or
// that another kind of limiter has, is an error of each verb.
func TestLimits(t *testing.T) {
	bubble(t, func(t *testing.T, c *throttle.Client, s *throttletest.Server) {
		plans, quota := c.Rate("plans", throttle.Unlimited(), throttle.DenyCache(true)), c.Quota("quota", 1, time.Hour)
		for i, want := range []bool{true, true, false} {
			require.Equal(t, want, must(plans.With(throttle.Per(int64(2+i%2), time.Hour)).Allow(background, "bob")).Allowed, i)
		}
		require.Equal(t, "denials", must(plans.With(throttle.Per(2, time.Hour)).Allow(background, "bob")).Source)
		require.NoError(t, plans.Reset(background, "bob"))
		require.Zero(t, s.Keys())
		for _, err := range []error{
			only(plans.With(throttle.Units(1)).Info()), only(quota.With(throttle.PerHour(1)).Info()), only(quota.With(throttle.Limit{}).Info()), only(throttle.Rate{}.Info()),
			only(c.Rate("bad", throttle.PerHour(0)).With(throttle.PerHour(1)).Info()), only(c.Rate("rate", throttle.PerHour(1)).With(throttle.PerHour(0)).Info()),
			only(c.Window("exact", 1, 0, throttle.Exact()).Info()), only(c.Rate("x", throttle.PerHour(1), throttle.Exact()).Info()),
			only(c.Window("y", 1, time.Hour, throttle.In(nil)).Info()), only(c.Window("z", 1, throttle.Month).Info()), only(c.Quota("day", 1, time.Hour, throttle.OnDay(2)).Info()), only(c.Quota("day", 1, throttle.Month, throttle.OnDay(32)).Info()), only(throttle.New(throttletest.NewServer(), throttle.Exact())),
			only(c.Rate("other", throttle.PerHour(1), throttle.KeyPrefix("x")).Info()), only(throttle.Slots{}.Take(background, "a", "me")),
		} {
			require.ErrorIs(t, err, throttle.ErrParams)
		}
	})
}

// Unlimited admits and Suspended denies without a call. The world has the other verbs.
func TestLimits_withoutTheServer(t *testing.T) {
	c, s := throttletest.New(t)
	day, jobs := c.Quota("day", 5, 24*time.Hour), c.Slots("jobs", 1, time.Minute)
	for limit, want := range map[throttle.Limit]throttle.Result{
		throttle.Unlimited(): {Allowed: true, Limit: 1<<63 - 1, Remaining: 1<<63 - 1, Granted: 3, Source: "limit"},
		throttle.Suspended(): {RetryAfter: throttle.Never, Source: "limit"},
	} {
		rate, slots, calls := c.Rate("plans", throttle.PerHour(1)).With(limit), jobs.With(limit), s.Calls()
		reserved := must(rate.Reserve(background, "a", 3, time.Minute))
		require.Equal(t, want, reserved.Result)
		require.NoError(t, reserved.Cancel(background))
		require.Equal(t, want.Allowed, must(slots.Take(background, "a", "me")).Allowed)
		require.False(t, must(slots.Release(background, "a", "me")))
		lease, err := slots.Acquire(background, "a")
		require.Equal(t, want.Allowed, err == nil)
		require.NoError(t, lease.Close())
		must(rate.Raise(background, "a", 1))
		require.Equal(t, throttle.Info{Name: "plans", Units: want.Limit}, must(rate.Info()))
		require.Equal(t, must(day.Info()), must(day.With(limit).With(throttle.Units(5)).Info()))
		require.Equal(t, calls, s.Calls())
		all := must(c.All(background, day.Part("a", 1), rate.Part("a", 3)))
		require.Equal(t, []any{want.Allowed, want, want.Granted / 3}, []any{all.Allowed, all.Each[1], all.Each[0].Granted})
		require.Equal(t, want.Allowed, all.Decider == 0)
		require.True(t, must(c.SettleAll(background, day.Part("a", -1*want.Granted/3), rate.Part("a", 3))).Allowed)
	}
}

// Several holders of a slot name themselves. Who renews learns whether the slot was still held.
func TestSlots_namedHolders(t *testing.T) {
	c, _ := throttletest.New(t)
	jobs := c.Slots("jobs", 2, time.Minute)
	for i, step := range []struct {
		verb               func(context.Context, string, string) (throttle.Result, error)
		holder             string
		allowed, renewed   bool
		remaining, granted int64
	}{
		{jobs.Peek, "a", true, false, 2, 0}, {jobs.Take, "a", true, false, 1, 1}, {jobs.Take, "a", true, true, 1, 0}, {jobs.Peek, "a", true, true, 1, 0},
		{jobs.Take, "b", true, false, 0, 1}, {jobs.Take, "c", false, false, 0, 0}, {jobs.Peek, "c", false, false, 0, 0},
		{jobs.With(throttle.Units(3)).Take, "c", true, false, 0, 1},
	} {
		h := must(step.verb(background, "", step.holder))
		require.Equal(t, []any{step.allowed, step.renewed, step.remaining, step.granted}, []any{h.Allowed, h.Renewed, h.Remaining, h.Granted}, i)
	}
	again := must(c.All(background, jobs.Part("", "b"))).Each[0]
	require.Equal(t, []any{true, true, int64(0)}, []any{again.Allowed, again.Renewed, again.Granted}, "in All")
	require.True(t, must(jobs.Release(background, "", "a")))
	require.False(t, must(jobs.Release(background, "", "a")))
	require.ErrorIs(t, only(jobs.Take(background, "", "")), throttle.ErrParams)
	require.ErrorIs(t, only(jobs.Release(background, "", "")), throttle.ErrParams)
}

// Retry-After is in whole seconds that are long enough.
func TestResult_retryAfterSeconds(t *testing.T) {
	for r, want := range map[throttle.Result]int64{
		{}: 1, {RetryAfter: 1}: 1, {RetryAfter: time.Second}: 1, {RetryAfter: time.Second + 1}: 2, {RetryAfter: throttle.Never}: 0,
		{Allowed: true}: 0, {Allowed: true, RetryAfter: time.Millisecond}: 1, {RetryAfter: 100 * 365 * 24 * time.Hour}: 3_153_600_000,
	} {
		require.Equal(t, want, r.RetryAfterSeconds(), r)
	}
}
