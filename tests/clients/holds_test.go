package clients

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"gothrottle/commands/memory/resp"
	"gothrottle/throttle"
)

// takeHold is a call of Hold, and what becomes of the hold.
func (r *run) takeHold(ctx context.Context, o *outcome, l verbs, key string) {
	h, err := l.Hold(ctx, key, o.N, r.levels(o, o.Client, key)...)
	o.Ended, o.Err, o.Parts = time.Since(r.epoch), err, []throttle.Result{{}}
	if h == nil {
		return
	}
	o.Parts[0] = h.Result
	ticket := h.Ticket()
	o.hold, _, _ = strings.Cut(ticket, ".")
	time.Sleep(o.Hold)
	switch o.End {
	case "close":
		_ = h.Close()
	case "settle":
		o.settled = h.Settle(context.Background(), o.Cost)
	case "settle twice":
		var again sync.WaitGroup
		again.Go(func() { _ = h.Settle(context.Background(), o.Cost) })
		o.settled = h.Settle(context.Background(), o.Cost)
		again.Wait()
	case "settle elsewhere":
		client := (o.Client + 1) % r.Clients
		other := r.clients[client]
		parts := append([]throttle.Part{other[o.Limit].(verbs).Part(key, 0)}, r.levels(o, client, key)...)
		h, err := other[len(other)-1].(*throttle.Client).Resume(ticket, parts...)
		if o.settled = err; err == nil { // else the client is closed
			o.settled = h.Settle(context.Background(), o.Cost)
		}
	}
	o.released = time.Since(r.epoch)
}

// levels returns the other level of a hold for a client, if there is one.
func (r *run) levels(o *outcome, client int, key string) []throttle.Part {
	if o.With == o.Limit || o.With >= len(r.Limits) || r.Limits[o.With].TTL == 0 {
		return nil
	}
	return []throttle.Part{r.clients[client][o.With].(verbs).Part(key, o.N)}
}

// heldNow returns the keys of holds that haven't lapsed.
func heldNow(s *resp.Server) (keys []string) {
	m := s.Memory()
	for _, key := range m.Keys() {
		if v := m.Get(key); strings.HasSuffix(key, ":held") && v != nil {
			for _, member := range v.Set {
				if member.Text[0] == '\x02' && time.UnixMicro(-int64(member.Score)).After(time.Now()) {
					keys = append(keys, key)
				}
			}
		}
	}
	return keys
}

// clause is what an admitted GO.ALL or GO.RELEASE says of one key.
type clause struct {
	key, kind, id string
	n             int64 // slots or units
	ttl           time.Duration
}

// clausesOf returns the clauses of an admitted call of a hold.
func clausesOf(words []string, reply any) (all []clause) {
	numbers, _ := reply.([]any)
	switch {
	case words[0] == "GO.RELEASE":
		return []clause{{key: words[1], kind: "RELEASE", id: words[2]}}
	case words[0] != "GO.ALL" || len(numbers) == 0 || numbers[0] != int64(0):
		return nil
	}
	at := map[string]int{"LEASE": 5, "THROTTLE": 5, "WINDOW": 4, "QUOTA": 4}
	for i := 1; i < len(words); {
		end := i + 1 + slices.Index(append(slices.Clone(words[i+1:]), "KEY"), "KEY")
		one, c := words[i:end], clause{key: words[i], kind: words[i+1], id: words[i+2]}
		if at := at[c.kind]; at > 0 {
			c.n, _ = strconv.ParseInt(one[at], 10, 64)
		}
		if c.kind == "LEASE" {
			ms, _ := strconv.ParseInt(one[3], 10, 64)
			c.id, c.ttl = one[4], time.Duration(ms)*time.Millisecond
		}
		all = append(all, c)
		i = end + 1
	}
	return all
}

// heldFits: after each admitted hold, what was spent and what is held is within the limit.
func (r *run) heldFits() string {
	type taken struct {
		n   int64
		end time.Time
	}
	spent, held := map[string]int64{}, map[string]map[string]taken{}
	for _, one := range r.runs {
		for _, c := range clausesOf(one.Words, one.Reply) {
			key, isHeld := strings.CutSuffix(c.key, ":held")
			l := &r.Limits[key[1]-'0']
			if l.TTL == 0 || r.has("failover") {
				continue
			}
			if held[key] == nil {
				held[key] = map[string]taken{}
			}
			switch {
			case !isHeld:
				spent[key] += c.n
			case c.kind == "RELEASE":
				delete(held[key], c.id)
			default:
				t := held[key][c.id]
				if !t.end.After(one.At) {
					t.n = c.n
				}
				t.end = one.At.Add(c.ttl)
				held[key][c.id] = t
			}
			sum := spent[key] - int64(float64(l.Units)*float64(one.At.Sub(r.epoch)+time.Second)/float64(l.Period)) // what a rate drains
			for _, t := range held[key] {
				if t.end.After(one.At) {
					sum += t.n
				}
			}
			if c.kind == "LEASE" && c.n > 0 && sum > l.Units {
				return fmt.Sprintf("+%s: %q: %d of %d are spent or held", one.At.Sub(r.epoch), one.Words, sum, l.Units)
			}
		}
	}
	return ""
}

// settlements returns how often the cost of a hold is charged in the end.
func (r *run) settlements(o *outcome) (n int) {
	for _, one := range r.runs {
		if r.undone(one) {
			continue
		}
		for _, c := range clausesOf(one.Words, one.Reply) {
			if c.key == r.keyOf(o, 0) && c.n == o.Cost && slices.Contains(one.Words, "RELEASE") {
				n++
			}
		}
	}
	return n
}

// holdOnce: a hold's cost is charged once if its holder knows that, at most once if nobody knows, and else not at all. A failover
// may lose the hold, and with it a charge that the holder believes in.
func (r *run) holdOnce(o *outcome) string {
	if o.Verb != "Hold" || o.End == "" {
		return ""
	}
	n := r.settlements(o)
	here := o.Parts[0].Source == "failed-local" && o.End != "settle elsewhere" // which has no ticket
	counted := strings.HasPrefix(o.End, "settle") && o.Parts[0].Allowed && o.settled == nil && !here
	switch {
	case counted && n == 0 && r.has("failover"):
	case counted && n != 1, n > 1:
		return fmt.Sprintf("its cost %d was charged %d times: %v", o.Cost, n, o.settled)
	case !counted && n > 0 && !errors.Is(o.settled, throttle.ErrLost):
		return fmt.Sprintf("its cost %d was charged: %v", o.Cost, o.settled)
	}
	return ""
}

// holdKnows: without a fault, a settlement is counted, denied or refused by a client that is closed. Only another process doesn't
// know what became of a hold that has lapsed.
func (r *run) holdKnows(o *outcome) string {
	var denied *throttle.DeniedError
	if o.End == "settle elsewhere" && o.Hold > r.Limits[o.Limit].TTL/2 && errors.Is(o.settled, throttle.ErrLost) {
		return ""
	}
	if o.settled == nil || len(r.Faults) > 0 || r.hopeless(o) || errors.Is(o.settled, redis.ErrClosed) || errors.As(o.settled, &denied) {
		return ""
	}
	return fmt.Sprintf("its settlement fails: %v", o.settled)
}

// holdEnds: once a hold was settled or closed, no call renews it.
func (r *run) holdEnds(o *outcome) string {
	if o.hold == "" || o.End == "leave" || o.End == "settle elsewhere" {
		return ""
	}
	for _, one := range r.runs {
		for _, c := range clausesOf(one.Words, one.Reply) {
			if at := one.At.Sub(r.epoch); c.kind == "LEASE" && c.id == o.hold && c.n == 0 && at > o.released && o.settled == nil {
				return fmt.Sprintf("it was renewed at +%s", at)
			}
		}
	}
	return ""
}

// holdsNothing: a ttl after the last call nothing is held.
func (r *run) holdsNothing() string {
	if len(r.still) > 0 {
		return fmt.Sprintf("something is held in %q", r.still)
	}
	return ""
}
