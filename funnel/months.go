package funnel

// dayMicros is the length of a day of 24 hours. The Unix epoch counts no leap seconds.
const dayMicros Micros = 86_400_000_000

// The Gregorian calendar repeats after 400 years.
const (
	daysPerCycle   = 146_097
	monthsPerCycle = 400 * 12
	daysTo1970     = 719_162 // from January 1 of the year 1
)

// daysBeforeMonth is how many days of a year that isn't a leap year come before each month.
var daysBeforeMonth = [12]int64{0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334}

// monthDay returns the first day of a month. January 1, 1970 is day 0.
func monthDay(month int64) int64 {
	years := floorDiv(month, 12) + 1969 // the years before this one
	inYear := month - floorDiv(month, 12)*12
	leapDays := years/4 - years/100 + years/400
	if year := years + 1; inYear >= 2 && year%4 == 0 && (year%100 != 0 || year%400 == 0) {
		leapDays++
	}
	return years*365 + leapDays - daysTo1970 + daysBeforeMonth[inYear]
}

// monthsEnd returns when the window that contains an instant ends. A window has n months and begins this much later than its
// first month does. The first is January 1970, or another one n months apart.
func monthsEnd(now Micros, n int64, offset Micros) Micros {
	day := floorDiv(int64(now-offset), int64(dayMicros))
	next := floorDiv(day*monthsPerCycle/daysPerCycle-1, n) * n // about this month: surely not a later one
	for monthBegin(next, offset) <= now {
		next += n
	}
	return monthBegin(next, offset)
}

// monthBegin returns the instant of a month at this offset, which is less than 31 days. In a month without that day it is
// on the last one, at the same time.
func monthBegin(month int64, offset Micros) Micros {
	day := min(monthDay(month), monthDay(month+1)-1-floorDiv(int64(offset), int64(dayMicros)))
	return Micros(day)*dayMicros + offset
}

// floorDiv divides and rounds toward minus infinity. b > 0.
func floorDiv(a, b int64) int64 {
	if a < 0 {
		return (a+1)/b - 1
	}
	return a / b
}
