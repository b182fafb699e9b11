package clients

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"gothrottle/commands/memory/resp"

	"gothrottle/throttle"
)

// results: a result has the limit of the call, and its source, cause, units and times fit together.
func (r *run) results(o *outcome) string {
	var denied *throttle.DeniedError
	if errors.As(o.Err, &denied) && (o.Verb == "Lease" || o.Verb == "Hold") {
		return r.limitOf(o, 0, &denied.Result).wrong(o, false, &denied.Result)
	}
	if o.Err != nil {
		fallback := r.Limits[o.Limit].Open || r.Limits[o.Limit].Closed || r.Limits[o.Limit].Local
		if fallback && slices.Contains([]string{"Allow", "AllowN", "AllowAtMost", "Reserve", "Lease", "Take", "Hold"}, o.Verb) && errors.Is(o.Err, throttle.ErrUnavailable) && !errors.Is(o.Err, redis.ErrClosed) {
			return "it has a fallback"
		}
		return ""
	}
	for i := range o.Parts {
		if wrong := r.limitOf(o, i, &o.Parts[i]).wrong(o, i == 0 && o.Other, &o.Parts[i]); wrong != "" {
			return wrong
		}
	}
	return ""
}

// limitOf returns the limit of a part's result. Of a hold's levels, one has decided.
func (r *run) limitOf(o *outcome, part int, p *throttle.Result) *limit {
	l := r.Limits[[]int{o.Limit, o.With}[part]]
	own := p.Limit == l.Units || p.Source == "failed-local" && p.Limit == max(l.Units/2, 1)
	if o.Verb == "Hold" && !own && o.With < len(r.Limits) && r.Limits[o.With].TTL > 0 {
		l.Units = r.Limits[o.With].Units
	}
	return &l
}

// wrong returns what is wrong with a result. other is whether it is of the other limit.
func (l *limit) wrong(o *outcome, other bool, p *throttle.Result) string {
	n, all := o.N, o.Verb == "All" || o.Verb == "SettleAll"
	switch {
	case o.Verb == "Wait": // it returns none
		return ""
	case l.Kind == "slots":
		n = 1
	}
	limit := l.units(other)
	if p.Source == "failed-local" {
		limit = max(limit/2, 1)
	}
	if p.Limit != limit {
		return fmt.Sprintf("its limit is %d", limit)
	}
	asks := l.Kind != "unlimited" && l.Kind != "suspended"
	denied, partly := !p.Allowed && p.Granted == 0, p.Granted >= 0 && p.Granted <= n
	switch {
	case (p.Cause != nil) != slices.Contains([]string{"failed-open", "failed-closed", "failed-local"}, p.Source):
		return "its source has another cause"
	case p.Cause != nil && slices.Contains([]string{"Peek", "PeekSlot", "Refund", "Settle", "Raise"}, o.Verb):
		return "an outage is a success"
	case p.Source == "failed-local" && (!l.Local || all):
		return "this process decided"
	case p.Source == "failed-open" && (!l.Open || all || !p.Allowed || p.Granted != n):
		return "it failed open"
	case p.Source == "failed-closed" && (!l.Closed || all || !denied || p.RetryAfter != time.Second):
		return "it failed closed"
	case p.Source == "budget" && (l.Budget == 0 || n != 1), p.Source == "denials" && !l.Denies,
		p.Source == "limit" && asks && !all, p.Source == "":
		return "it has another source"
	}
	switch o.Verb {
	case "Allow", "AllowN", "Lease", "Acquire", "Take", "Reserve", "Hold":
		again := o.Verb == "Acquire" && p.Renewed // an earlier try took the slot, and its reply was lost
		if !denied && (!p.Allowed || p.Granted != n && !again || p.RetryAfter != 0) || denied && p.RetryAfter <= 0 && p.RetryAfter != throttle.Never {
			return "all units or none are granted"
		}
	case "AllowAtMost", "Raise":
		if !partly || o.Verb == "AllowAtMost" && p.Allowed != (p.Granted > 0) {
			return "a part of the units is granted"
		}
	case "Peek", "PeekSlot":
		if p.Granted != 0 && asks {
			return "a look takes nothing"
		} else if o.Verb == "Peek" && p.Allowed && p.Remaining == 0 {
			return "nothing is left"
		}
	case "Refund":
		if asks && (p.Granted > 0 || p.Granted < -n) {
			return "at most those units are given back"
		}
	}
	return ""
}

// units are those of the limit, or of its other limit.
func (l *limit) units(other bool) int64 {
	switch {
	case l.Kind == "unlimited":
		return math.MaxInt64
	case l.Kind == "suspended":
		return 0
	case other:
		return 2 * l.Units
	}
	return l.Units
}

// has reports whether one of these faults happens.
func (w *world) has(names ...string) bool {
	return slices.ContainsFunc(w.Faults, func(f fault) bool { return slices.Contains(names, f.Name) })
}

// unheard reports whether the reply to a command that ran at this time may not have come: a server runs at the end of a silence
// what has come meanwhile, though the callers have gone. A failover and a half-open connection lose replies that are on their way,
// and after a failover new connections take a part of the time limit.
func (w *world) unheard(at time.Duration) bool {
	return w.has("cut", "cut after", "restart", "mute", "lost") || slices.ContainsFunc(w.Faults, func(f fault) bool {
		failover, on := f.Name == "failover", at <= f.At && f.At <= at+w.Far
		return f.Name == "silent" && f.At+f.For == at || (failover || f.Name == "half-open") && on || failover && at >= f.At && at-f.At < time.Second
	})
}

// holder is the id of a lease on the server.
func (o *outcome) holder() string {
	return reflect.ValueOf(o.lease).Elem().FieldByName("holder").String()
}

// held: a lease is lost only in a fault, in time, and if its slot is new: then its holder had lost it, and knows from the reply,
// unless that is lost.
func (r *run) held(o *outcome) string {
	if o.lease == nil || o.lease.Source != "server" {
		return ""
	}
	if o.lost > 0 && len(r.Faults) == 0 && r.CloseAt == 0 {
		return fmt.Sprintf("it was lost at +%s", o.lost)
	}
	l, taken, last := &r.Limits[o.Limit], false, time.Duration(0)
	for _, one := range r.runs {
		numbers, _ := one.Reply.([]any)
		if one.Words[0] != "GO.LEASE" || !slices.Contains(one.Words, o.holder()) || len(numbers) < 6 || numbers[0] != int64(0) {
			continue
		}
		at, end := one.At.Sub(r.epoch), o.released
		if last = at; o.lost > 0 {
			end = o.lost
		}
		if again := taken && numbers[5] == int64(0) && !r.unheard(at); again && at > o.Ended && end > at+l.Timeout {
			return fmt.Sprintf("it had lost its slot at +%s", at)
		}
		taken = true
	}
	if o.lost > last+l.Period {
		return fmt.Sprintf("it was lost at +%s, and renewed at +%s", o.lost, last)
	}
	return ""
}

// waits: a call of Wait that has its slot ends when the slot comes, or with the reply that says so.
func (r *run) waits(o *outcome) string {
	if o.Verb != "Wait" || o.Err != nil || r.Limits[o.Limit].Kind != "rate" || (r.Limits[o.Limit].Open || r.Limits[o.Limit].Local) && (len(r.Faults) > 0 || r.hopeless(o)) {
		return ""
	}
	for _, one := range r.runs {
		numbers, _ := one.Reply.([]any)
		at := one.At.Sub(r.epoch)
		if at < o.Began || at > o.Ended || len(numbers) < 6 || one.Words[1] != r.keyOf(o, 0) || !slices.Contains(one.Words, "RESERVE") {
			continue
		}
		comes := at + time.Duration(numbers[5].(int64))*time.Millisecond
		if numbers[0] == int64(0) && comes <= o.Ended && (o.Ended <= comes+r.Far || len(r.Faults) > 0) {
			return ""
		}
	}
	return "no slot comes then"
}

// closes: a call that begins after Close ends at once, and no call before says that the client is closed.
func (r *run) closes(o *outcome) string {
	closed, from := errors.Is(o.Err, redis.ErrClosed), r.CloseAt
	switch {
	case closed && errors.Is(o.Err, throttle.ErrUnavailable) || len(o.Parts) > 0 && errors.Is(o.Parts[0].Cause, redis.ErrClosed):
		return "that is no outage"
	case closed && (from == 0 || o.Ended < from):
		return "the client isn't closed"
	case from > 0 && o.Began > from && (!closed || o.Ended > o.Began):
		return "the client is closed"
	}
	return ""
}

// others: while one master of a cluster has a fault, calls for keys of the others are decided.
func (r *run) others(o *outcome) string {
	mine := resp.Slot(o.keyName()) * 3 / resp.Slots
	ours := func(f fault) bool { return f.Name == "failover" || f.Name == "move" || f.Node == mine }
	if r.Kind != "cluster" || slices.ContainsFunc(r.Faults, ours) || o.Deadline != 0 || o.Cancel != 0 || o.decided() || r.hopeless(o) || errors.Is(o.Err, redis.ErrClosed) {
		return ""
	}
	return "its master has no fault"
}

// whole: a call that ends because it got no reply has had at least 7/8 of its time limit: calls share timers.
func (r *run) whole(o *outcome) string {
	err, limit := o.Err, r.Limits[o.Limit].Timeout
	if len(o.Parts) > 0 && err == nil {
		err = o.Parts[0].Cause
	}
	if o.Deadline == 0 && o.Cancel == 0 && !strings.HasSuffix(o.Verb, "All") && errors.Is(err, context.DeadlineExceeded) && o.Ended-o.Began < limit-limit/8 {
		return fmt.Sprintf("its limit is %s: %v", limit, err)
	}
	return ""
}

// replies: the numbers of a result are those of a reply to its caller, or to all that were merged with it.
func (r *run) replies(o *outcome) string {
	if len(o.Parts) != 1 || o.Parts[0].Source != "server" || o.Err != nil || o.Verb == "All" || o.Verb == "SettleAll" {
		return ""
	}
	p := o.Parts[0]
	for _, one := range r.runs {
		numbers, _ := one.Reply.([]any)
		at := one.At.Sub(r.epoch)
		if at < o.Began || at > o.Ended || len(numbers) < 5 || one.Words[1] != r.keyOf(o, 0) {
			continue
		}
		ms := func(i int) time.Duration { return time.Duration(numbers[i].(int64)) * time.Millisecond }
		left, wait := numbers[2].(int64), ms(3)
		if left != p.Remaining && (o.Verb != "PeekSlot" || left+1 != p.Remaining) || ms(4) != p.ResetAfter {
			continue
		}
		if wait == p.RetryAfter || wait < 0 && (p.RetryAfter == throttle.Never || p.RetryAfter == 0) || p.Allowed && p.RetryAfter == 0 {
			return ""
		}
	}
	return "no server has replied so"
}
