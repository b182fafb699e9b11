package throttle_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"gothrottle/throttle"
	"gothrottle/throttle/throttletest"
)

// Days and months end at midnight of their zone, but for windows around a change of its clocks. No day of such a change
// admits more than twice its limit.
func TestAlignedQuota_inZones(t *testing.T) {
	for _, name := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"} {
		zone := must(time.LoadLocation(name))
		bubble(t, func(t *testing.T, c *throttle.Client, s *throttletest.Server) {
			day, month := c.AlignedQuota("day", 3, 24*time.Hour, zone), c.MonthlyQuota("month", 1e6, zone)
			s.Advance(s.Now().Truncate(30 * time.Minute).Add(30 * time.Minute).Sub(s.Now()))
			admitted := map[string]int{}
			for range 400 * 48 {
				now := s.Now().In(zone)
				today := now.Format(time.DateOnly)
				r := must(day.Allow(background, "bob"))
				admitted[today] += int(r.Granted)
				_, before := now.AddDate(0, 0, -1).Zone()
				_, after := now.AddDate(0, 0, 2).Zone()
				limit := 3
				if before != after {
					limit = 6
				} else if end := now.Add(r.ResetAfter).Round(time.Second); r.ResetAfter > 0 {
					require.Equal(t, "00:00:00", end.Format(time.TimeOnly), "%s: a day ends at %v", name, end)
				}
				require.LessOrEqual(t, admitted[today], limit, "%s: %s", name, today)
				if now.Day() == 10 && now.Hour() == 12 {
					r := must(month.Allow(background, "bob"))
					end := now.Add(r.ResetAfter)
					require.Equal(t, 1, end.Add(2*time.Hour).Day(), "%s: a month ends at %v", name, end)
					require.LessOrEqual(t, end.Sub(time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, zone)).Abs(), time.Hour+time.Second)
				}
				s.Advance(30 * time.Minute)
			}
		})
	}
}

// With makes limits that meet at the same keys, with the same options.
func TestWith(t *testing.T) {
	bubble(t, func(t *testing.T, c *throttle.Client, _ *throttletest.Server) {
		denies := throttle.DenyCache(true)
		rate, window, quota := c.Rate("rate", throttle.PerHour(2), denies), c.Window("window", 2, time.Hour, denies), c.Quota("quota", 2, time.Hour, denies)
		for _, pair := range [][2]throttle.Allower{
			{rate, rate.With(throttle.PerHour(4))}, {window, window.With(throttle.Units(4))}, {quota, quota.With(throttle.Units(4))},
		} {
			for i, want := range []bool{true, true, false, true, true, false} { // a denial of the first limit is not one of the second
				require.Equal(t, want, must(pair[i/3].Allow(background, "bob")).Allowed, i)
			}
			require.Equal(t, throttle.FromDenials, must(pair[1].Allow(background, "bob")).Source)
		}
		require.ErrorIs(t, rate.With(throttle.PerHour(0)).Info().Err, throttle.ErrParams)
		require.ErrorIs(t, c.Rate("bad", throttle.PerHour(0)).With(throttle.PerHour(1)).Info().Err, throttle.ErrParams)
	})
}

// Limits from data meet at the keys of their name, whatever their number, and share its options. A name has constant limits
// or those, and its options once. A limit of another kind is an error of each verb.
func TestLimits(t *testing.T) {
	bubble(t, func(t *testing.T, c *throttle.Client, s *throttletest.Server) {
		plans := c.Limits("plans", throttle.DenyCache(true))
		for i, want := range []bool{true, true, false} {
			require.Equal(t, want, must(plans.Rate(throttle.Per(int64(2+i%2), time.Hour)).Allow(background, "bob")).Allowed, i)
		}
		require.Equal(t, throttle.FromDenials, must(plans.Rate(throttle.Per(2, time.Hour)).Allow(background, "bob")).Source)
		require.NoError(t, plans.Reset(background, "bob"))
		require.Zero(t, s.Keys())
		require.NoError(t, c.Limits("plans", throttle.DenyCache(true)).Slots(throttle.Units(1), time.Hour).Info().Err)
		for _, err := range []error{
			c.Limits("plans").Rate(throttle.PerHour(1)).Info().Err, c.Rate("plans", throttle.PerHour(1), throttle.DenyCache(true)).Info().Err,
			plans.Rate(throttle.Units(1)).Info().Err, plans.Quota(throttle.PerHour(1), time.Hour).Info().Err, throttle.Rate{}.Info().Err,
			plans.MonthlyQuota(throttle.Limit{}, nil).Info().Err, plans.ExactWindow(throttle.Units(1), 0).Info().Err,
			c.Limits("other", throttle.KeyPrefix("x")).Rate(throttle.PerHour(1)).Info().Err, only(throttle.Slots{}.Hold(background, "a", "me")),
		} {
			require.ErrorIs(t, err, throttle.ErrParams)
		}
	})
}

// Unlimited admits and Suspended denies without a call, also as parts of All: one that is suspended denies the others.
func TestLimits_withoutTheServer(t *testing.T) {
	c, s := throttletest.New(t)
	plans, jobs := c.Rate("plans", throttle.PerHour(1)), c.Limits("jobs")
	day := c.Quota("day", 5, 24*time.Hour)
	for limit, want := range map[throttle.Limit]throttle.Result{
		throttle.Unlimited(): {Allowed: true, Limit: 1<<63 - 1, Remaining: 1<<63 - 1, Granted: 3, Source: throttle.FromLimit},
		throttle.Suspended(): {RetryAfter: throttle.Never, Source: throttle.FromLimit},
	} {
		rate, slots, calls := plans.With(limit), jobs.Slots(limit, time.Minute), s.Calls()
		require.Equal(t, want, must(rate.AllowN(background, "a", 3)))
		require.Equal(t, want, must(day.With(limit).AllowAtMost(background, "a", 3)))
		reserved := must(rate.Reserve(background, "a", 3, time.Minute))
		require.Equal(t, want, reserved.Result)
		require.NoError(t, reserved.Cancel(background))
		require.Equal(t, want.Allowed, must(slots.Hold(background, "a", "me")).Allowed)
		require.Equal(t, want.Allowed, must(slots.Peek(background, "a", "me")).Allowed)
		require.False(t, must(slots.Release(background, "a", "me")))
		lease, err := slots.Acquire(background, "a")
		require.Equal(t, want.Allowed, err == nil)
		require.NoError(t, lease.Close())
		must(rate.Pause(background, "a", time.Minute))
		require.Equal(t, want.Limit, rate.Info().Units)
		require.NoError(t, rate.Info().Err)
		require.Equal(t, calls, s.Calls())
		all := must(c.All(background, day.Part("a", 1), rate.Part("a", 3)))
		require.Equal(t, want.Allowed, all.Allowed)
		require.Equal(t, want, all.Each[1])
		require.Equal(t, map[bool]int{true: 0, false: 1}[want.Allowed], all.Decider)
		require.Equal(t, want.Granted/3, all.Each[0].Granted)
		require.True(t, must(c.SettleAll(background, day.Part("a", -1*want.Granted/3), rate.Part("a", 3))).Allowed)
		require.Equal(t, want.Allowed, must(c.All(background, rate.Part("a", 3))).Allowed)
		require.NoError(t, day.Reset(background, "a"))
	}
}

// Several holders of a slot name themselves. Who renews learns whether the slot was still held.
func TestSlots_namedHolders(t *testing.T) {
	bubble(t, func(t *testing.T, c *throttle.Client, s *throttletest.Server) {
		jobs := c.Slots("jobs", 2, time.Minute)
		type row struct {
			allowed, renewed   bool
			remaining, granted int64
		}
		ask := func(verb func(context.Context, string, string) (throttle.Holding, error), holder string) row {
			h := must(verb(background, "", holder))
			return row{h.Allowed, h.Renewed, h.Remaining, h.Granted}
		}
		require.Equal(t, row{true, false, 2, 0}, ask(jobs.Peek, "a"))
		require.Equal(t, row{true, false, 1, 1}, ask(jobs.Hold, "a"))
		require.Equal(t, row{true, true, 1, 0}, ask(jobs.Hold, "a"))
		require.Equal(t, row{true, true, 1, 0}, ask(jobs.Peek, "a"))
		require.Equal(t, row{true, false, 0, 1}, ask(jobs.Hold, "b"))
		require.Equal(t, row{false, false, 0, 0}, ask(jobs.Hold, "c"))
		require.Equal(t, row{false, false, 0, 0}, ask(jobs.Peek, "c"))
		require.Equal(t, row{true, false, 0, 1}, ask(jobs.With(throttle.Units(3)).Hold, "c"))
		require.True(t, must(jobs.Release(background, "", "a")))
		require.False(t, must(jobs.Release(background, "", "a")))
		require.ErrorIs(t, only(jobs.Hold(background, "", "")), throttle.ErrParams)
		require.ErrorIs(t, only(jobs.Release(background, "", "")), throttle.ErrParams)
		s.Fail(io.EOF)
		require.ErrorIs(t, only(jobs.Hold(background, "", "a")), throttle.ErrUnavailable)
		require.ErrorIs(t, only(jobs.Release(background, "", "a")), throttle.ErrUnavailable)
	})
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
