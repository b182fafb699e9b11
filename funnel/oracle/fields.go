package oracle

import (
	"fmt"
	"math/big"

	"gothrottle/funnel"
)

// Fields returns the fields and values that a hash holds for the bucket as its cell, from 0. A period
// of whole seconds is stored in seconds. Any other period is stored in ns, with a minus sign.
func (t *Throttle) Fields(cell int) map[string]string {
	empty, rate := t.State()
	whole := new(big.Int).Div(empty.Num(), empty.Denom())
	rest := new(big.Rat).Sub(empty, new(big.Rat).SetInt(whole))
	rest.Mul(rest, big.NewRat(rate.Count, 1))
	period := -int64(rate.Period)
	if rate.Period%funnel.Second == 0 {
		period = int64(rate.Period / funnel.Second)
	}
	name := func(field int) string { return fmt.Sprint(4*cell + field) }
	fields := map[string]string{name(0): whole.String(), name(1): fmt.Sprint(period)}
	if rate.Count != 1 {
		fields[name(2)], fields[name(3)] = rest.RatString(), fmt.Sprint(rate.Count)
	}
	if t.Locked() != 0 {
		fields[fmt.Sprint(128+cell)] = fmt.Sprint(int64(t.Locked()))
	}
	return fields
}
