package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	pb "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

// asking is a request under way, and what is known of it.
type asking struct {
	all     []*asked
	began   time.Time
	known   bool // what must come of it
	decided bool // by the server
	refused bool // as the gateway says
}

// begin begins a request. skip says that a proxy admits it without asking the gateway.
func (p *play) begin(asks []ask) (q *asking, skip bool) {
	p.calls++
	p.admits.Clear()
	q, skip = &asking{began: time.Now()}, !p.healthy()
	for _, a := range asks {
		d := p.of(a)
		d.server, d.local = d.look(p.server.Memory()), d.look(p.decides.Memory.Server)
		d.local.here = true
		if q.all = append(q.all, d); skip && d.closes() && !d.shadow && !p.shadow {
			p.fail("closed", "%+v passes without a decision, because the gateway is unhealthy", d.ask)
		}
	}
	return q, skip || len(asks) == 0
}

// expects finds out what must come of the request.
func (p *play) expects(q *asking) {
	took, most, looks := time.Since(q.began), 50*time.Millisecond, false
	for _, d := range q.all {
		if looks = looks || d.hits == 0 || d.trial && d.reports(); d.charges || d.cost || d.algorithm == "concurrency" && d.hits < 0 || d.hits == 0 && d.fits() == 1 || d.trial && d.reports() { // there may be a second call
			most = max(most, 100*time.Millisecond)
		}
		if d.holds { // one for the hold, one for the others of its tag, one to give it back
			most = max(most, 150*time.Millisecond)
		}
		if d.ticket != "" { // and others for a new hold
			most = 200 * time.Millisecond
		}
	}
	if slices.ContainsFunc(q.all, func(d *asked) bool { return d.hits == 0 && d.fits() == 1 }) && slices.ContainsFunc(q.all, func(d *asked) bool { return d.algorithm == "concurrency" }) {
		most = 150 * time.Millisecond // slots are looked at alone
	}
	if q.decided = p.fault == ""; took > most || q.decided && took > 0 {
		p.fail("in time", "an answer after %s, with the fault %q", took, p.fault)
	}
	q.known = q.decided || faults[p.fault].deaf || p.fault == "READONLY" && !looks
	for _, d := range q.all {
		switch {
		case q.decided:
			d.want = d.decide(d.server)
		case d.refuses():
			d.want.over = true
		case d.failure == "local":
			d.want, q.known = d.decide(d.local), q.known && took == 0 && d.around == nil
		default:
			d.want.over = d.closes()
		}
	}
	allOrNone(q.all, func(d *asked) state { return map[bool]state{true: d.server, false: d.local}[q.decided] })
	if q.known {
		return
	}
	p.told = nil
	for _, d := range q.all { // a fail-closed rule's hits pass if the server has admitted them
		_, admitted := p.admits.Load(d.key)
		d.want.over = d.closes() && !admitted
	}
}

// charged compares what is in use after a request with what must be.
func (p *play) charged(q *asking) {
	for _, d := range q.all {
		store, was := p.server.Memory(), d.server
		if !q.decided {
			store, was = p.decides.Memory.Server, d.local
		}
		now := d.look(store)
		switch {
		case q.decided && d.algorithm == "concurrency" && d.hits > 0 && !d.none && now.holds && now.lapses != d.period:
			p.fail("charged", "%+v holds its slot for %s", d.ask, now.lapses)
		case !q.decided && (d.failure != "local" || d.refuses()):
		case now.used == was.used+d.want.charge && (!q.decided || now.held == was.held+d.want.held) && (d.around == nil || now.around == was.around+d.want.around):
		case d.want.charge == 0 && d.hits > 0 && !d.want.over:
			p.fail("all or none", "%s: %+v takes %d of a request that is refused", d.key, d.ask, now.used-was.used)
		default:
			p.fail("charged", "%s: %+v: in use were %+v, then %+v, want %+v", d.key, d.ask, was, now, d.want)
		}
	}
}

// askEnvoy sends descriptors.
func (p *play) askEnvoy(asks []ask) {
	q, skip := p.begin(p.each(asks))
	if skip {
		return
	}
	r, err := p.ShouldRateLimit(context.Background(), p.request(q.all))
	if err != nil {
		p.fail("answers", "%s", err)
	}
	q.refused = r.OverallCode == pb.RateLimitResponse_OVER_LIMIT
	if p.expects(q); q.known {
		p.charged(q)
		p.overall(q, r)
		defer p.note(q)
	}
	for i, st := range r.Statuses {
		p.status(q, tightest(q.all, i), st)
	}
}

// status checks what an answer says of one descriptor.
func (p *play) status(q *asking, d *asked, st *pb.RateLimitResponse_DescriptorStatus) {
	over := st.Code == pb.RateLimitResponse_OVER_LIMIT
	measured := q.decided || d.failure == "local" || d.refuses()
	left, ends := int64(st.LimitRemaining), st.DurationUntilReset.GetSeconds()
	switch {
	case !over && d.want.over && !d.shadow && !q.decided && d.failure == "closed" && !q.refused:
		p.fail("closed", "%+v is admitted with the fault %s", d.ask, p.fault)
	case !q.known:
	case over != (d.want.over && !d.shadow), measured && left != d.want.left:
		p.fail("decision", "%+v with %+v in use and the fault %q: want %+v, not %s", d.ask, d.server, p.fault, d.want, st)
	case !measured && left > 0:
		p.fail("numbers", "%+v: %d are left, says nobody", d.ask, left)
	case q.decided && d.algorithm == "fixed_window" && ends != seconds(d.keeps(time.Now())),
		q.decided && d.algorithm == "sliding_window" && d.around == nil && ends > seconds(d.period),
		q.decided && d.around != nil && d.server.around > 0 && d.hits == 0 && ends == 0,
		q.decided && d.refuses() && over && d.hits > 0 && !d.settle && (d.algorithm == "sliding_window" || d.algorithm == "gcra") && ends != seconds(d.period),
		q.decided && d.algorithm == "gcra" && d.want.charge > 0 && !d.want.over && !d.server.locked && (ends > d.empty(d.server.used+d.want.charge) || ends+1 < d.empty(d.server.used+d.want.charge-1)):
		p.fail("decision", "%+v with %+v in use ends after %d s", d.ask, d.server, ends)
	case q.decided && d.algorithm == "gcra" && d.around == nil && d.want.over && !d.charges && d.hits > 0 && d.hits <= d.fits() && d.lockout == 0 &&
		(ends > d.empty(d.server.used+d.hits-d.fits()) || ends < d.empty(d.server.used+d.hits-d.fits()-1)):
		p.fail("decision", "%+v with %+v in use may be asked again after %d s", d.ask, d.server, ends)
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
	st := r.Statuses[q.all[tightest].at]
	want := fmt.Sprintf("RateLimit-Limit=%d RateLimit-Remaining=%d RateLimit-Reset=%d ", st.CurrentLimit.GetRequestsPerUnit(), st.LimitRemaining, st.DurationUntilReset.GetSeconds())
	if q.decided && said != want {
		p.fail("decision", "the headers %s, want %s", said, want)
	}
}

// request is what Envoy sends.
func (p *play) request(all []*asked) *pb.RateLimitRequest {
	var texts []string
	for _, d := range all {
		if d.ask.also {
			continue
		}
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
	r := request("d", texts...)
	if len(texts) == 1 && all[0].hits > 1 { // a request may say it for all
		r.HitsAddend, r.Descriptors[0].HitsAddend = uint32(all[0].hits), nil
	}
	return r
}

// owed is a request that /check has admitted and nobody has reported.
type owed struct {
	asks     []ask
	value    int
	reserved string
	at       time.Time
}

// askProxy asks as nginx does.
func (p *play) askProxy(asks []ask, value int) {
	q, skip := p.begin(p.each(asks))
	if skip {
		return
	}
	headers := []string{"X-Forwarded-Host", strconv.Itoa(value)}
	for _, a := range asks {
		headers = append(headers, a.headers()...)
	}
	r := p.get(p.t, p.web+"/check", headers...)
	p.expects(q)
	if refused, _ := p.sums(q.all); refused && r.StatusCode == 200 && !q.decided && slices.ContainsFunc(q.all, (*asked).closes) {
		p.fail("closed", "%+v is admitted with the fault %s", asks, p.fault)
	}
	if q.known {
		p.checked(q, r)
	}
	if r.StatusCode == 200 && slices.ContainsFunc(q.all, func(d *asked) bool { return d.cost }) {
		p.owes = append(p.owes, owed{asks, value, r.Header.Get("Gothrottle-Reserved"), q.began})
		p.due++
	}
}

// headers let the rule of an ask match, and bring its limit.
func (a *ask) headers() []string {
	all := []string{fmt.Sprint("R", a.rule), "1"}
	if a.limit != 0 {
		all = append(all, fmt.Sprint("L", a.rule), fmt.Sprint(a.limit))
	}
	return all
}

// checked judges the answer to a proxy.
func (p *play) checked(q *asking, r *http.Response) {
	refused, tightest := p.sums(q.all)
	var reserved []string
	measured := q.decided
	for _, d := range q.all {
		if d.holds && q.decided && !d.want.over {
			p.holds["held"]++
			p.holds["returned"] += map[bool]int{true: 1}[refused]
		}
		if measured = measured || d.failure == "local" || d.refuses(); !d.cost || d.want.charge+d.want.held == 0 || !q.decided {
			continue
		}
		if refused {
			d.want.charge, d.want.held = 0, 0 // it is given back
		} else if d.holds {
			reserved = append(reserved, d.name+";id=")
		} else {
			reserved = append(reserved, fmt.Sprintf("%s;t=%d", d.name, q.began.UnixMilli()))
		}
	}
	wait, err := strconv.ParseInt(r.Header.Get("Retry-After"), 10, 64)
	said, wants := r.Header.Get("RateLimit"), fmt.Sprintf("%q;r=%d;t=", q.all[tightest].title(), q.all[tightest].want.left)
	switch {
	case r.StatusCode != map[bool]int{false: 200, true: 429}[refused]:
		p.fail("decision", "%d, want %+v", r.StatusCode, q.all[tightest])
	case refused == (err != nil) || wait > p.longest(q):
		p.fail("decision", "%+v may be asked again after %d s", q.all, wait)
	case q.decided && !strings.HasPrefix(said, wants):
		p.fail("decision", "%s, want %s", said, wants)
	case !measured && said != "":
		p.fail("numbers", "%s, says nobody", said)
	case regexp.MustCompile(`id=\w{26}\.\w+`).ReplaceAllString(r.Header.Get("Gothrottle-Reserved"), "id=") != strings.Join(reserved, ","):
		p.fail("charged", "reserved is %q, want %q", r.Header.Get("Gothrottle-Reserved"), reserved)
	}
	p.charged(q)
	p.note(q)
}

// longest is after how many seconds no rule refuses any more. None that is in shadow counts, and a guess is a second.
func (p *play) longest(q *asking) int64 {
	seconds := int64(1)
	for _, d := range q.all {
		if d.want.over && !d.shadow && (q.decided || d.failure == "local" || d.refuses()) {
			seconds = max(seconds, int64(max(d.drains(), d.period, d.lockout, d.hold)/time.Second)+1, d.empty(max(d.server.used, d.local.used)+d.hits))
		}
	}
	return seconds
}

// settles reports what a request has cost.
func (p *play) settles(o owed, percent int64) {
	headers := []string{"X-Forwarded-Host", strconv.Itoa(o.value), "Gothrottle-Reserved", o.reserved}
	var asks []ask
	var costs []int64
	for _, a := range p.each(o.asks) {
		l := p.rules[a.rule]
		cost := cmp.Or(l.estimate, l.fits()) * percent / 100
		if !a.also {
			headers = append(headers, a.headers()...)
		}
		if !l.cost {
			continue
		}
		if !a.also {
			headers = append(headers, fmt.Sprint("C", a.rule), strconv.FormatInt(cost, 10))
		}
		d := p.of(a)
		if a.settle, a.hits = true, cost; strings.Contains(o.reserved, d.name+";id=") {
			_, a.ticket, _ = strings.Cut(o.reserved, d.name+";id=")
			a.ticket, _, _ = strings.Cut(a.ticket, ",")
			a.lapses = o.at.Add(d.hold - d.hold/10)
		} else if strings.Contains(o.reserved, d.name+";") {
			a.hits = max(cost-l.estimate, -d.returns(o.at))
		}
		asks, costs = append(asks, a), append(costs, cost)
	}
	q, _ := p.begin(asks)
	status := p.send(p.t, "POST", p.web+"/settle", headers...).StatusCode
	lost := func(d *asked) bool { return d.want.lost }
	if p.expects(q); q.decided && status != map[bool]int{false: 204, true: 503}[slices.ContainsFunc(q.all, lost)] || q.known && !q.decided && len(asks) > 0 && status != 503 {
		p.fail("charged", "a report is answered by %d with the fault %q", status, p.fault)
	}
	if !q.decided {
		p.told = nil
		return
	}
	for i, d := range q.all {
		if p.holds[d.want.report]++; lost(d) {
			p.told = nil
		}
		if d.ticket != "" && d.want.charge == 0 {
			costs[i] = 0 // it has been settled, or is ignored
		}
		p.tell(d, costs[i], true)
		p.charged(&asking{all: q.all[i : i+1], decided: true})
	}
}

// note remembers what the metrics must say.
func (p *play) note(q *asking) {
	for _, d := range q.all {
		hits := max(d.hits, 0)
		if q.decided && !d.want.over && d.algorithm != "concurrency" {
			hits = max(d.want.charge, 0)
		}
		if d.cost { // it is known after the request
			hits = 0
		}
		p.tell(d, hits, q.decided || d.refuses())
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
