package clients

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	exact "gothrottle/tests/world"
	"gothrottle/throttle"
)

// properties are what must hold in every world, by their names. Each returns what is wrong, "" if nothing is.
var properties = map[string]func(*run) string{
	"a decision or an error within the time limit": each((*run).inTime),
	"an ended context ends the call":               each((*run).contexts),
	"a working server decides":                     (*run).decides,
	"a cut connection costs its own calls":         (*run).cuts,
	"a limiter recovers as it would alone":         (*run).recovers,
	"charged before admitted":                      (*run).chargedBefore,
	"units of a budget are fresh":                  each((*run).fresh),
	"a remembered denial is the server's":          each((*run).denials),
	"charged once":                                 (*run).chargedOnce,
	"a failover loses the lag, and nothing else":   (*run).losesTheLag,
	"a lost lease is lost":                         each((*run).leases),
	"a lease is held until it is lost":             each((*run).held),
	"a process admits its share":                   (*run).sharesLocally,
	"a result is of its call":                      each((*run).results),
	"a result is what the server replied":          each((*run).replies),
	"a call has its whole time limit":              each((*run).whole),
	"a Wait ends when its slot comes":              each((*run).waits),
	"a fault of one master costs no others' calls": each((*run).others),
	"nobody is served after Close":                 each((*run).closes),
	"nothing is left after Close":                  (*run).leavesNothing,
	"spent and held fit":                           (*run).heldFits,
	"a hold is charged once":                       each((*run).holdOnce),
	"without a fault, a settlement is counted":     each((*run).holdKnows),
	"nothing renews a hold that has ended":         each((*run).holdEnds),
	"nothing is held a ttl after the last call":    (*run).holdsNothing,
}

// each makes a property of all calls from one of a single call.
func each(holds func(*run, *outcome) string) func(*run) string {
	return func(r *run) string {
		for _, o := range r.outcomes {
			if wrong := holds(r, o); wrong != "" {
				return fmt.Sprintf("%s; %s: %s (%v, %v)", o.step, o.Ended-o.Began, wrong, o.Parts, o.Err)
			}
		}
		return ""
	}
}

// timeout is the time limit of a call: of All and SettleAll, the longest of its parts.
func (w *world) timeout(s *step) time.Duration {
	most := w.Limits[s.Limit].Timeout
	if s.both(w) {
		most = max(most, w.Limits[s.With].Timeout)
	}
	return most
}

// hopeless reports whether no reply can come within a call's time limit.
func (r *run) hopeless(o *outcome) bool { return r.timeout(&o.step) < r.Far }

func (r *run) inTime(o *outcome) string {
	most, took := r.timeout(&o.step), o.Ended-o.Began
	switch {
	case o.Verb == "Wait" || o.Verb == "Acquire":
		most += max(o.Deadline, 0)
	case o.Deadline > 0:
		most = min(most, o.Deadline)
	case (o.Verb == "Lease" || o.Verb == "Hold") && errors.Is(o.Err, redis.ErrClosed): // it gives back what it has taken
		most *= 2
	}
	if took > most {
		return fmt.Sprintf("it takes more than %s", most)
	}
	return ""
}

func (r *run) contexts(o *outcome) string {
	ended := errors.Is(o.Err, context.DeadlineExceeded) && !errors.Is(o.Err, throttle.ErrUnavailable) || errors.Is(o.Err, context.Canceled)
	var denied *throttle.DeniedError
	switch end := cmp.Or(o.Deadline, o.Cancel); {
	case errors.Is(o.Err, redis.ErrClosed):
	case o.Deadline < 0 && !ended && !errors.As(o.Err, &denied):
		return "its context had ended"
	case ended && (end == 0 || o.Ended-o.Began < end):
		return "its context has not ended"
	}
	return ""
}

// decided reports whether the server decided a call, or what this process knows from it.
func (o *outcome) decided() bool {
	var denied *throttle.DeniedError
	if errors.As(o.Err, &denied) {
		return denied.Result.Cause == nil
	}
	return o.Err == nil && !slices.ContainsFunc(o.Parts, func(p throttle.Result) bool { return p.Cause != nil })
}

// quiet reports whether no fault can be felt at this time.
func (r *run) quiet(from, to time.Duration) bool {
	slowest := time.Duration(0)
	for i := range r.Limits {
		slowest = max(slowest, r.Limits[i].Timeout)
	}
	return !slices.ContainsFunc(r.Faults, func(f fault) bool {
		return to >= f.At && from <= f.At+f.For+2*time.Second+2*slowest
	})
}

// decides: where no fault can be felt, every call is decided. A connection that a fault has killed without a word costs the
// calls that are sent on it together, whenever that is.
func (r *run) decides() string {
	dead := 0
	if slices.ContainsFunc(r.Faults, func(f fault) bool { return slices.Contains(momentary, f.Name) }) {
		dead = r.Clients * connections
	}
	if r.Limits[0].Timeout < r.Far { // go-redis closes the connection of a call that is late: others may wait for a new one
		dead += r.Clients
	}
	ends, first := map[time.Duration]bool{}, (*outcome)(nil)
	for _, o := range r.outcomes {
		if !r.hopeless(o) && !errors.Is(o.Err, redis.ErrClosed) && o.Deadline == 0 && o.Cancel == 0 && !o.decided() && r.quiet(o.Began, o.Ended) {
			ends[o.Ended], first = true, cmp.Or(first, o)
		}
	}
	if len(ends) > dead {
		return fmt.Sprintf("%s: nobody decides, nor %d times later: %v, %v", first.step, len(ends)-1, first.Parts, first.Err)
	}
	return ""
}

// cuts: when all connections are closed, each costs the calls that are sent on it together, and few others, unless new ones with
// TLS, four round trips and a call take most of the time limit.
func (r *run) cuts() string {
	if len(r.Faults) != 1 || r.Faults[0].Name != "cut" || r.Far > 20*time.Millisecond {
		return ""
	}
	ends := map[time.Duration]bool{}
	for _, o := range r.outcomes {
		if o.Deadline == 0 && o.Cancel == 0 && !o.decided() && !r.hopeless(o) && !errors.Is(o.Err, redis.ErrClosed) {
			ends[o.Ended] = true
		}
	}
	if len(ends) > 3*r.cutAway {
		return fmt.Sprintf("%d connections were closed, and %d times nobody decided", r.cutAway, len(ends))
	}
	return ""
}

// recovers: after connections have gone silent, a limiter's calls fail for as long as if no other limiter called, or little
// longer: others have opened connections, too, and each may cost a time limit.
func (r *run) recovers() string {
	if len(r.Faults) != 1 || r.Faults[0].Name != "half-open" {
		return ""
	}
	for i := range r.Limits {
		if r.Limits[i].Kind == "slots" || r.Limits[i].Timeout < r.Far {
			continue
		}
		alone := *r.world
		alone.Steps = slices.DeleteFunc(slices.Clone(r.Steps), func(s step) bool { return s.Limit != i || s.both(r.world) })
		if beside, by := r.recovered(i), r.again(&alone).recovered(i); beside > 2*by+500*time.Millisecond+r.Limits[i].Timeout {
			return fmt.Sprintf("limiter %d has no decisions for %s, and alone for %s", i, beside, by)
		}
	}
	return ""
}

// recovered returns for how long a limiter's calls have failed after a fault: how many tenths of a second it had calls in, and no
// decision.
func (r *run) recovered(limit int) (failed time.Duration) {
	const part = 100 * time.Millisecond
	decided := map[time.Duration]bool{}
	for _, o := range r.outcomes {
		if o.Limit == limit && o.Deadline == 0 && o.Cancel == 0 && !o.both(r.world) && o.Began > r.Faults[0].At {
			decided[o.Began/part] = decided[o.Began/part] || o.decided()
		}
	}
	for _, any := range decided {
		if !any {
			failed += part
		}
	}
	return failed
}

// sharesLocally: what processes admit by themselves is within their shares of the limit.
func (r *run) sharesLocally() string {
	admitted := map[string][]event{}
	for _, o := range r.outcomes {
		l := &r.Limits[o.Limit]
		if slices.ContainsFunc(r.Steps, func(s step) bool { return s.Other && s.Limit == o.Limit }) {
			continue // usage carries over to the other limit
		}
		if len(o.Parts) == 1 && o.Parts[0].Source == "failed-local" && o.Parts[0].Allowed && o.Verb != "Wait" && o.Verb != "Reserve" && l.Kind != "slots" && l.TTL == 0 {
			where := fmt.Sprint("client ", o.Client, " ", r.keyOf(o, 0))
			admitted[where] = append(admitted[where], event{at: o.Ended, key: l.Kind, got: o.Parts[0].Granted, charged: l.Units})
		}
	}
	for where, all := range admitted {
		l := &r.Limits[where[strings.Index(where, " l")+2]-'0']
		slices.SortFunc(all, func(a, b event) int { return cmp.Compare(a.at, b.at) })
		for i := range all {
			sum := int64(0)
			for _, e := range all[i:] {
				sum += e.got
				most, span := max(l.Units/2, 1), e.at-all[i].at
				switch {
				case l.Kind == "rate":
					most += int64(float64(l.Units) * float64(span) / float64(2*l.Period))
				case l.Kind == "quota":
					most *= 2 + int64(span/l.Period)
				default:
					most *= 1 + int64(span/l.Period)
				}
				if sum > most {
					return fmt.Sprintf("+%s: %s admits %d in %s, more than %d", e.at, where, sum, span, most)
				}
			}
		}
	}
	return ""
}

// fresh: a unit of a budget was charged at most its hold ago, or while a command was under way.
func (r *run) fresh(o *outcome) string {
	if len(o.Parts) == 0 || o.Parts[0].Source != "budget" {
		return ""
	}
	since := o.Ended - hold - r.Limits[o.Limit].Timeout
	for _, e := range r.charges {
		if e.key == r.keyOf(o, 0) && e.at > since && e.at <= o.Ended {
			return ""
		}
	}
	return "its unit was charged before"
}

// denials: a denial that a process repeats is one of the server's for the same limit and quantity, whose wait isn't over. The
// process gave no units back since.
func (r *run) denials(o *outcome) string {
	if len(o.Parts) == 0 || o.Parts[0].Source != "denials" {
		return ""
	}
	refunded := time.Duration(-1) // a second before the world
	for _, other := range r.outcomes {
		if other.Verb == "Refund" && other.Client == o.Client && r.keyOf(other, 0) == r.keyOf(o, 0) && other.Ended < o.Began && other.decided() {
			refunded = max(refunded, other.Ended)
		}
	}
	for _, one := range r.runs {
		numbers, _ := one.Reply.([]any)
		c, known := exact.Policies{}.Parse(one.Words)
		if at := one.At.Sub(r.epoch); !known || at > o.Ended || at+r.Limits[o.Limit].Timeout < refunded || len(numbers) < 5 || one.Words[1] != r.keyOf(o, 0) {
			continue
		} else if clause := c.Clauses[0]; clause.Quantity != o.N && !(clause.UpTo && o.N == 1) || numbers[1] != o.Parts[0].Limit {
			continue
		} else if wait, _ := numbers[3].(int64); at+time.Duration(wait)*time.Millisecond >= o.Ended+o.Parts[0].RetryAfter {
			return ""
		}
	}
	return "no denial of the server lasts so long"
}

// granted returns the units that a run took from each key, by the server's own words.
func granted(words []string, reply any) map[string]int64 {
	all := map[string]int64{}
	c, known := exact.Policies{}.Parse(words)
	numbers, _ := reply.([]any)
	if !known || strings.HasSuffix(words[0], "_RO") || len(numbers) < 5 || numbers[0] != int64(0) && !c.Clauses[0].UpTo {
		return all
	}
	for _, clause := range c.Clauses {
		if clause.Kind == 'l' {
			continue
		}
		n := clause.Quantity
		if len(c.Clauses) == 1 && (clause.UpTo || clause.Raise) {
			n = numbers[5].(int64)
		}
		all[clause.Key] += n
	}
	return all
}

// event is units that a server took, or that a caller got.
type event struct {
	at      time.Duration
	key     string
	charged int64
	got     int64
}

// events returns what was charged and got, in the order of time. What is charged in a µs comes before what is got in it.
func (r *run) events() (all []event) {
	for _, one := range r.runs {
		for key, n := range granted(one.Words, one.Reply) {
			all = append(all, event{at: one.At.Sub(r.epoch), key: key, charged: n})
		}
	}
	r.charges = slices.Clone(all)
	for _, o := range r.outcomes {
		for i, p := range o.Parts {
			if (p.Source == "server" || p.Source == "budget") && o.Verb != "Hold" {
				all = append(all, event{at: o.Ended, key: r.keyOf(o, i), got: p.Granted})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	return all
}

// keyOf returns the key of a part on the server.
func (r *run) keyOf(o *outcome, part int) string {
	return fmt.Sprint("l", []int{o.Limit, o.With}[part], ":", o.keyName())
}

// chargedBefore: no unit is given to a caller that a server did not charge before.
func (r *run) chargedBefore() string {
	left := map[string]int64{}
	for _, e := range r.timeline {
		if r.Limits[e.key[1]-'0'].Kind == "slots" {
			continue
		}
		if left[e.key] += max(e.charged, 0) - max(e.got, 0); left[e.key] < 0 {
			return fmt.Sprintf("+%s: of %s %d units more were admitted than charged", e.at, e.key, -left[e.key])
		}
	}
	return ""
}

// chargedOnce: in the end a server has charged what callers got, and perhaps what they don't know of: units of calls without a
// reply, and those of a budget that could not be given back.
func (r *run) chargedOnce() string {
	net, unknown, returns := map[string]int64{}, map[string]int64{}, map[string]int64{}
	for _, e := range r.timeline {
		net[e.key] += e.charged - e.got
	}
	for _, o := range r.outcomes {
		parts := 1
		if o.both(r.world) {
			parts = 2
		}
		waits := o.Verb == "Wait" || o.Verb == "Reserve"
		for i := range parts {
			switch known := o.decided() && !waits; {
			case !known && o.Verb == "Refund":
				returns[r.keyOf(o, i)] += o.N
			case !known:
				unknown[r.keyOf(o, i)] += o.N
			}
		}
	}
	for key, n := range net {
		l := &r.Limits[key[1]-'0']
		if l.Kind == "slots" || l.TTL > 0 { // see holdOnce
			continue
		}
		if l.Budget > 0 && l.Period < time.Hour { // a window may end before units are given back
			unknown[key] += max(n, 0)
		}
		if len(r.Faults) > 0 {
			unknown[key] += l.Budget * int64(r.Clients)
		}
		if n > unknown[key] || n < -returns[key] {
			return fmt.Sprintf("of %s %d units more were charged than callers got; they don't know of %d", key, n, unknown[key])
		}
	}
	return ""
}

// leases: a lease that was lost has no token, and its holder takes no slot again.
func (r *run) leases(o *outcome) string {
	if o.lost == 0 {
		return ""
	}
	if !errors.Is(o.tokenErr, throttle.ErrLost) && !errors.Is(o.tokenErr, throttle.ErrUnavailable) {
		return fmt.Sprintf("its lease was lost at +%s, and has the token %d, %v", o.lost, o.token, o.tokenErr)
	}
	return ""
}

// leavesNothing: what a Close gives back is given back if the server works. The bubble says whether goroutines are left.
func (r *run) leavesNothing() string {
	if r.closed != nil && len(r.Faults) == 0 {
		return fmt.Sprintf("Close: %v", r.closed)
	}
	for _, o := range r.outcomes {
		if o.lease != nil && len(r.Faults) == 0 && !r.hopeless(o) && slices.Contains(r.left[r.keyOf(o, 0)], o.holder()) {
			return fmt.Sprintf("%s: its slot is taken in the end", o.step)
		}
	}
	return ""
}

// broken returns the properties that do not hold, with what is wrong.
func (r *run) broken() map[string]string {
	all := map[string]string{}
	r.timeline = r.events()
	for name, holds := range properties {
		if wrong := holds(r); wrong != "" {
			all[name] = wrong
		}
	}
	return all
}
