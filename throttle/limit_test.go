package throttle_test

import (
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
		c, s := throttletest.New(t, throttle.Options{}, throttle.Timeout(patient))
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
	}
}
