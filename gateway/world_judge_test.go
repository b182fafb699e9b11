package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"gothrottle/commands/memory/resp"
)

// asking is a request under way, and what is known of it.
type asking struct {
	all     []*asked
	began   time.Time
	known   bool // what must come of it
	decided bool // by the server
}

// begin begins a request.
func (p *play) begin(asks []ask) *asking {
	p.calls++
	p.mu.Lock()
	p.ran = nil
	p.mu.Unlock()
	q := &asking{began: time.Now()}
	for _, a := range asks {
		d := p.of(a)
		d.server, d.local = d.look(p.server.Memory()), d.look(p.decides.Memory)
		q.all = append(q.all, d)
	}
	return q
}

// skips reports whether a proxy admits the request without asking the gateway.
func (p *play) skips(q *asking) bool {
	if !p.health || p.healthy() {
		return false
	}
	for _, d := range q.all {
		if d.closes() && !d.shadow && !p.shadow {
			p.fail("closed", "%+v passes without a decision, because the gateway is unhealthy", d.ask)
		}
	}
	return true
}

// end finds out what must come of the request.
func (p *play) end(q *asking) {
	took := time.Since(q.began)
	looks := slices.ContainsFunc(q.all, func(d *asked) bool { return d.hits == 0 })
	if q.decided = p.fault == ""; took > 160*time.Millisecond || q.decided && took > 0 {
		p.fail("in time", "an answer after %s, with the fault %q", took, p.fault)
	}
	q.known = q.decided || faults[p.fault].deaf || p.fault == "READONLY" && !looks
	for _, d := range q.all {
		switch {
		case q.decided:
			d.want = d.decide(d.server)
		case d.failure == "local":
			d.want, q.known = d.decide(d.local), q.known && took == 0 && d.around == nil
		default:
			d.want.over = d.closes()
		}
	}
	allOrNone(q.all, func(d *asked) state { return map[bool]state{true: d.server, false: d.local}[q.decided] })
	if !q.known {
		p.passed, p.told = nil, nil
		p.admitted(q)
	}
}

// admitted fails if a fail-closed rule's hits may have passed without a reply of the server: those that it has not decided.
func (p *play) admitted(q *asking) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range q.all {
		d.want.over = d.closes() && !slices.ContainsFunc(p.ran, func(r resp.Run) bool {
			reply, _ := r.Reply.([]any)
			return slices.Contains(r.Words, d.key) && len(reply) > 0 && reply[0] == int64(0)
		})
	}
}

// charged compares what is in use after a request with what must be.
func (p *play) charged(q *asking) {
	for _, d := range q.all {
		store, was := p.server.Memory(), d.server
		if !q.decided {
			store, was = p.decides.Memory, d.local
		}
		now := d.look(store)
		switch {
		case !q.decided && d.failure != "local":
		case d.shadow && was.used+d.want.charge > d.fits(): // it isn't promised that a shadow counts beyond the limit
		case now.used == was.used+d.want.charge && (d.around == nil || now.around == was.around+d.want.around):
		case d.want.charge == 0 && d.hits > 0 && !d.want.over:
			p.fail("all or none", "%s: %+v takes %d of a request that is refused", d.key, d.ask, now.used-was.used)
		default:
			p.fail("charged", "%s: %+v: in use were %+v, then %+v, want %+v", d.key, d.ask, was, now, d.want)
		}
	}
}

// ask sends descriptors.
func (p *play) ask(asks []ask) {
	q := p.begin(asks)
	if len(asks) == 0 || p.skips(q) {
		return
	}
	r, err := p.ShouldRateLimit(context.Background(), p.request(q.all))
	if err != nil {
		p.fail("answers", "%s", err)
	}
	if p.end(q); q.known {
		p.charged(q)
		p.overall(q, r)
		defer p.note(q, r.OverallCode == pb.RateLimitResponse_OVER_LIMIT)
	}
	for i, d := range q.all {
		p.status(q, d, r.Statuses[i])
	}
}

// status checks what an answer says of one descriptor.
func (p *play) status(q *asking, d *asked, st *pb.RateLimitResponse_DescriptorStatus) {
	over := st.Code == pb.RateLimitResponse_OVER_LIMIT
	measured := q.decided || d.failure == "local"
	left, ends := int64(st.LimitRemaining), st.DurationUntilReset.GetSeconds()
	switch {
	case !over && d.want.over && !d.shadow && !q.decided && d.failure == "closed":
		p.fail("closed", "%+v is admitted with the fault %s", d.ask, p.fault)
	case !q.known:
	case over != (d.want.over && !d.shadow), measured && left != d.want.left:
		p.fail("decision", "%+v with %+v in use and the fault %q: want %+v, not %s", d.ask, d.server, p.fault, d.want, st)
	case !measured && p.reads && left > 0:
		p.fail("numbers", "%+v: %d are left, says nobody", d.ask, left)
	case q.decided && d.algorithm == "fixed_window" && ends != int64((d.keeps(time.Now())+time.Second-1)/time.Second),
		q.decided && d.algorithm == "sliding_window" && d.around == nil && ends > int64(d.period/time.Second):
		p.fail("decision", "%+v with %+v in use ends after %d s", d.ask, d.server, ends)
	}
}

// overall checks what an answer says of the whole request.
func (p *play) overall(q *asking, r *pb.RateLimitResponse) {
	refused, tightest := p.sums(q.all)
	if over := r.OverallCode == pb.RateLimitResponse_OVER_LIMIT; over != refused {
		p.fail("decision", "refused: %t, want %t: %s", over, refused, r)
	}
	said := ""
	for _, h := range r.ResponseHeadersToAdd {
		said += h.Key + "=" + h.Value + " "
	}
	st := r.Statuses[tightest]
	want := fmt.Sprintf("RateLimit-Limit=%d RateLimit-Remaining=%d RateLimit-Reset=%d ", st.CurrentLimit.GetRequestsPerUnit(), st.LimitRemaining, st.DurationUntilReset.GetSeconds())
	if q.decided && said != want {
		p.fail("decision", "the headers %s, want %s", said, want)
	}
}

// request is what Envoy sends.
func (p *play) request(all []*asked) *pb.RateLimitRequest {
	var texts []string
	for _, d := range all {
		text := fmt.Sprintf("r%d=%d", d.ask.rule, d.value)
		if d.algorithm == "concurrency" {
			text = fmt.Sprintf("r%d=0,id=%s", d.ask.rule, d.holder())
		}
		if d.below {
			text += ",t=x"
		}
		if d.settle {
			text += ",gothrottle.settle="
		}
		texts = append(texts, fmt.Sprint(text, "*", d.hits))
	}
	return request("d", texts...)
}

// owed is a request that /check has admitted and nobody has reported.
type owed struct {
	asks     []ask
	value    int
	reserved string
	at       time.Time
}

// check asks as a proxy does.
func (p *play) check(asks []ask, value int) {
	q := p.begin(asks)
	if len(asks) == 0 || p.skips(q) {
		return
	}
	header := http.Header{"X-Forwarded-Host": {strconv.Itoa(value)}}
	for _, a := range asks {
		header.Set(fmt.Sprint("R", a.rule), "1")
	}
	r := p.send("GET", p.web+"/check", header)
	p.end(q)
	if refused, _ := p.sums(q.all); refused && r.StatusCode == 200 && !q.decided && slices.ContainsFunc(q.all, (*asked).closes) {
		p.fail("closed", "%+v is admitted with the fault %s", asks, p.fault)
	}
	if q.known {
		p.checked(q, r)
	}
	if r.StatusCode == 200 && slices.ContainsFunc(q.all, func(d *asked) bool { return d.cost }) {
		p.owes = append(p.owes, owed{asks, value, r.Header.Get("Gothrottle-Reserved"), q.began})
	}
}

// checked judges the answer to a proxy.
func (p *play) checked(q *asking, r *http.Response) {
	refused, tightest := p.sums(q.all)
	var reserved []string
	measured := q.decided
	for _, d := range q.all {
		if measured = measured || d.failure == "local"; !d.cost || d.want.charge == 0 || !q.decided {
			continue
		}
		if refused {
			d.want.charge = 0 // it is given back
		} else {
			reserved = append(reserved, d.name)
		}
	}
	said, wants := r.Header.Get("RateLimit"), fmt.Sprintf("\"n%d\";r=%d;t=", q.all[tightest].ask.rule, q.all[tightest].want.left)
	switch {
	case r.StatusCode != map[bool]int{false: 200, true: 429}[refused]:
		p.fail("decision", "%d, want %+v", r.StatusCode, q.all[tightest])
	case q.decided && !strings.HasPrefix(said, wants):
		p.fail("decision", "%s, want %s", said, wants)
	case !measured && p.reads && said != "":
		p.fail("numbers", "%s, says nobody", said)
	case r.Header.Get("Gothrottle-Reserved") != strings.Join(reserved, ","):
		p.fail("charged", "reserved is %q, want %q", r.Header.Get("Gothrottle-Reserved"), reserved)
	}
	p.charged(q)
	p.note(q, refused)
}

// settle reports what a request has cost.
func (p *play) settle(o owed, percent int64) {
	header := http.Header{"X-Forwarded-Host": {strconv.Itoa(o.value)}, "Gothrottle-Reserved": {o.reserved}}
	var asks []ask
	var costs []int64
	for _, a := range o.asks {
		l := p.rules[a.rule]
		if header.Set(fmt.Sprint("R", a.rule), "1"); !l.cost {
			continue
		}
		cost := max(l.estimate, l.fits()*int64(1-min(l.estimate, 1))) * percent / 100
		header.Set(fmt.Sprint("C", a.rule), strconv.FormatInt(cost, 10))
		if a.settle, a.hits = true, cost; strings.Contains(o.reserved+",", fmt.Sprintf(".n%d,", a.rule)) {
			a.hits -= l.estimate
		}
		asks, costs = append(asks, a), append(costs, cost)
	}
	q := p.begin(asks)
	status := p.send("POST", p.web+"/settle", header).StatusCode
	if p.end(q); q.decided && status != 204 || q.known && !q.decided && len(asks) > 0 && status != 503 {
		p.fail("charged", "a report is answered by %d with the fault %q", status, p.fault)
	}
	if !q.decided {
		p.passed, p.told = nil, nil
		return
	}
	for i, d := range q.all {
		if p.costs(d, o.at, costs[i]); d.hits >= 0 || time.Since(o.at) < d.keeps(o.at) { // what is given back later isn't promised
			p.charged(&asking{all: q.all[i : i+1], decided: true})
		}
	}
}

// passed is what was admitted, by key.
type passed map[string]*through

// through is the units that a limit has let pass. If some were reported, given back or passed in shadow, it is loose: nobody
// promises how many there may be.
type through struct {
	rule
	loose bool
	units []units
}

type units struct {
	at time.Time
	n  int64 // of a rule with a cost the estimate, until the cost is known
}

// note remembers what has passed, and what the metrics must say.
func (p *play) note(q *asking, refused bool) {
	for _, d := range q.all {
		outer := p.of(ask{rule: d.ask.rule, value: d.value}) // a share's units pass at the limit around it
		if p.passed != nil && p.passed[outer.key] == nil {
			p.passed[outer.key] = &through{rule: outer.rule}
		}
		if of := p.passed[outer.key]; of != nil {
			of.loose = of.loose || d.hits < 0 || d.reports() || d.shadow || p.shadow || d.cost && d.estimate == 0
			if q.decided && !refused && d.want.charge > 0 {
				of.units = append(of.units, units{time.Now(), d.want.charge})
			}
		}
		hits := max(d.hits, 0)
		if q.decided && !d.want.over && d.algorithm != "concurrency" {
			hits = max(d.want.charge, 0)
		}
		if d.cost { // it is known after the request
			hits = 0
		}
		p.tell(d, hits, q.decided)
	}
}

// costs notes what a request of this time has cost.
func (p *play) costs(d *asked, at time.Time, cost int64) {
	if of := p.passed[d.key]; of != nil {
		for i := range of.units {
			if u := &of.units[i]; u.at.Equal(at) {
				of.loose = of.loose || cost > u.n
				u.n = cost
			}
		}
	}
	if d.hits == 0 {
		p.told = nil
	}
	p.tell(d, cost, true)
}

// beyond fails if in any window more units have passed than the limit.
func (p *play) beyond() {
	for key, of := range p.passed {
		for i, first := range of.units {
			sum := int64(0)
			for _, next := range of.units[i:] {
				apart, most := next.at.Sub(first.at), of.fits()
				switch {
				case of.algorithm == "gcra":
					most += int64(apart) * of.rule.units / int64(of.period)
				case apart >= of.period, of.algorithm == "fixed_window" && first.at.Truncate(of.period) != next.at.Truncate(of.period):
					continue
				}
				if sum += next.n; sum > most && !of.loose {
					p.fail("window", "%s: %d units within %s, at most %d", key, sum, apart, most)
				}
			}
		}
	}
}

// The metrics are to say this of a decision.
func (p *play) tell(d *asked, hits int64, decided bool) {
	if p.told == nil {
		return
	}
	outcome := "ok"
	switch {
	case d.want.over && d.shadow:
		outcome = "shadow"
	case d.want.over:
		outcome = "over_limit"
	case (decided || d.failure == "local") && d.units-d.want.left > d.units*4/5:
		p.told[fmt.Sprintf("near_limit_total{rule=%q}", d.name)] += hits
	}
	p.told[fmt.Sprintf("decisions_total{outcome=%q,rule=%q}", outcome, d.name)]++
	p.told[fmt.Sprintf("hits_total{outcome=%q,rule=%q}", outcome, d.name)] += hits
	if !decided {
		p.told[fmt.Sprintf("fallbacks_total{policy=%q,rule=%q}", d.failure, d.name)]++
	}
}

// counted matches a line of the metrics.
var counted = regexp.MustCompile(`(?m)^gothrottle_gateway_((?:decisions|hits|near_limit|fallbacks)_total\S+) (\d+)`)

// metrics compares the metrics with what was charged.
func (p *play) metrics() {
	text, _ := io.ReadAll(p.send("GET", p.debug+"/metrics", http.Header{}).Body)
	said := map[string]int64{}
	for _, m := range counted.FindAllStringSubmatch(string(text), -1) {
		said[m[1]], _ = strconv.ParseInt(m[2], 10, 64)
		if p.told != nil {
			p.told[m[1]] += 0
		}
	}
	for line, n := range p.told {
		if p.counts && said[line] != n {
			p.fail("metrics", "%s is %d, want %d", line, said[line], n)
		}
	}
}
