// Package throttlehttp limits requests to net/http handlers with package throttle. Frameworks that take a
// func(http.Handler) http.Handler take its middleware unchanged: chi's Use, echo's WrapMiddleware.
package throttlehttp

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"gothrottle/throttle"
)

// Rule is one limit of requests to a handler, or one of the Costs of a Transport, which needs a Rate without a Lockout and
// has neither Key nor Share.
type Rule struct {
	Limiter Limiter                    // its name is in headers and in the body of a denial
	Key     func(*http.Request) string // the rest of the limiter's key. ByIP() if nil
	Cost    func(*http.Request) int64  // units that a request takes, or an estimate: 1 if nil. 0 takes none
	Unit    string                     // of a Transport: its name in headers: "tokens" for x-ratelimit-remaining-tokens

	// Share is the weight of a tenant of the rule before this one, 1 to 1000, or 0: see throttle.Part's Share. The Limiter is a
	// Window or a Quota.
	Share int

	// Limit, if not nil, returns the limit of a request, such as that of its user's plan: throttle.Unlimited, Suspended, a
	// rate if the Limiter is a Rate, Units if it is a Window or a Quota. The Limiter has the name, the options and the period.
	// A limit that makes no sense is an error, for Options.Failed.
	Limit func(*http.Request) throttle.Limit

	// Charge, if not nil, returns the units of a served request, from its response: Cost was then an estimate, and the
	// difference is settled, past the limit if need be. That is one more call, for which a small response waits. Charge
	// needs a Rate, a Window or a Quota. Costs that an outage left open stay as estimated. A Transport calls it once, when
	// the body ends or is closed; a request without an answer is charged as estimated.
	Charge func(*http.Request, Response) int64
}

// Response is what a Charge receives.
type Response struct {
	Status int   // that was sent; 0 if the handler panicked before that, 101 if it took the connection over
	Bytes  int64 // of the body, without what was written to a connection that was taken over
	Header http.Header
	Tail   []byte // the last 16 KiB of the body: of a Transport only
}

// Limiter is a throttle.Rate, throttle.Window or throttle.Policy. Several rules need limiters of one
// Client, without policies.
type Limiter interface {
	Info() (throttle.Info, error)
	AllowN(ctx context.Context, key string, n int64) (throttle.Result, error)
	Peek(ctx context.Context, key string) (throttle.Result, error)
}

// parted is a limiter that All and SettleAll take.
type parted interface {
	Part(key string, n int64) throttle.Part
}

// Options of the middleware.
type Options struct {
	// Skip says which requests are not limited; none if nil.
	Skip func(*http.Request) bool

	// Responses have RateLimit and RateLimit-Policy, as draft-ietf-httpapi-ratelimit-headers-11 defines them. XRateLimit sets
	// X-RateLimit-Limit, -Remaining and -Reset instead: Reset is the seconds until nothing is in use. NoHeaders sets neither.
	// Every denial after which a wait helps has Retry-After. If one middleware is inside another, the last one that decided
	// sets the headers.
	XRateLimit, NoHeaders bool

	// Denied writes the response of a denied request. If nil it is a problem+json body with the status 429, or 503 if nobody
	// decided. The headers, Retry-After among them, are set before.
	Denied func(http.ResponseWriter, *http.Request, throttle.Result)

	// Failed is called if there was no decision, and says whether the request goes on. If nil the request goes on if the
	// server did not decide, for whatever reason: see throttle.Undecided. A request whose context has ended is a status
	// 503, and everything else, such as a limit that makes no sense, a status 500. Limiters with a fallback decide by it.
	Failed func(http.ResponseWriter, *http.Request, error) (goOn bool)
}

// New returns a middleware that asks the limiters of the rules before each request. With more than one rule a request is
// admitted by all of them or takes nothing (GO.ALL): client must be the client of their limiters, and in a cluster the keys
// need one hash tag. The time limit is then the longest of the limiters', and the fallback the client's.
func New(client *throttle.Client, o Options, rules ...Rule) (func(http.Handler) http.Handler, error) {
	if client == nil || len(rules) == 0 {
		return nil, errors.New("throttlehttp: New needs a client and a rule")
	}
	l := &limiter{client: client, o: o}
	var policies []string
	named := map[string]bool{}
	for _, r := range rules {
		if r.Limiter == nil {
			return nil, errors.New("throttlehttp: a rule needs a limiter")
		}
		if r.Share != 0 && len(l.rules) == 0 {
			return nil, errors.New("throttlehttp: a share needs a rule before it, with the shared limit")
		}
		info, err := r.Limiter.Info()
		if err != nil {
			return nil, fmt.Errorf("throttlehttp: the limiter %q: %w", info.Name, err)
		}
		_, ok := r.Limiter.(parted)
		if _, may := with(r.Limiter, throttle.Unlimited()); r.Limit != nil && !may {
			return nil, fmt.Errorf("throttlehttp: the limiter %q cannot take a per-request limit", info.Name)
		}
		if named[info.Name] || (len(rules) > 1 || r.Charge != nil) && !ok {
			return nil, fmt.Errorf("throttlehttp: the limiter %q has two rules, or is a Policy and has Charge or another rule beside it", info.Name)
		}
		named[info.Name] = true
		if r.Key == nil {
			r.Key = ByIP()
		}
		if r.Cost == nil {
			r.Cost = func(*http.Request) int64 { return 1 }
		}
		l.rules = append(l.rules, r)
		l.infos = append(l.infos, info)
		policies = append(policies, policy(&info, info.Units))
		l.charges, l.varies = l.charges || r.Charge != nil, l.varies || r.Limit != nil || info.Units == 0 || info.Units == math.MaxInt64
	}
	l.policies = strings.Join(policies, ", ")
	return l.middleware, nil
}

type limiter struct {
	client   *throttle.Client
	o        Options
	rules    []Rule
	infos    []throttle.Info
	policies string // the value of RateLimit-Policy, unless it varies
	charges  bool   // a rule has Charge
	varies   bool   // a rule has Limit, is unlimited or is a server's policy
}

func (l *limiter) middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l.o.Skip != nil && l.o.Skip(r) {
			next.ServeHTTP(w, r)
			return
		}
		began := time.Now()
		all, asked, err := l.decide(r)
		if err != nil {
			if l.failed(w, r, err) {
				next.ServeHTTP(w, r)
			}
			return
		}
		l.setHeaders(w.Header(), asked, all)
		if !all.Allowed {
			l.denied(w, r, all)
			return
		}
		if !l.charges || all.Source == "failed-open" { // perhaps the estimate was not taken
			next.ServeHTTP(w, r)
			return
		}
		seen := &recorder{ResponseWriter: w, head: r.Method == http.MethodHead}
		defer l.settle(r, asked, all, began, seen) // even if it panics: httputil.ReverseProxy does when its upstream breaks off
		next.ServeHTTP(seen, r)
		seen.status = cmp.Or(seen.status, http.StatusOK)
	})
}

// ask is what one rule asks for a request.
type ask struct {
	by   Limiter
	key  string
	cost int64
}

// with returns a limiter with another limit, if it may have one.
func with(l Limiter, limit throttle.Limit) (Limiter, bool) {
	switch l := l.(type) {
	case throttle.Rate:
		return l.With(limit), true
	case throttle.Window:
		return l.With(limit), true
	}
	return l, false
}

// decide asks for all rules.
func (l *limiter) decide(r *http.Request) (throttle.AllResult, []ask, error) {
	asked := make([]ask, len(l.rules))
	for i := range l.rules {
		rule := &l.rules[i]
		asked[i] = ask{rule.Limiter, rule.Key(r), max(rule.Cost(r), 0)}
		if rule.Limit != nil {
			asked[i].by, _ = with(rule.Limiter, rule.Limit(r))
		}
	}
	if len(l.rules) > 1 {
		parts := make([]throttle.Part, len(l.rules))
		for i, a := range asked {
			if parts[i] = a.by.(parted).Part(a.key, a.cost); l.rules[i].Share != 0 {
				parts[i] = parts[i].Share(l.rules[i].Share)
			}
		}
		all, err := l.client.All(r.Context(), parts...)
		return all, asked, err
	}
	var one throttle.Result
	var err error
	if a := asked[0]; a.cost > 0 {
		one, err = a.by.AllowN(r.Context(), a.key, a.cost)
	} else {
		one, err = a.by.Peek(r.Context(), a.key)
		one.Allowed = err == nil // a look takes nothing
	}
	return throttle.AllResult{Result: one, Each: []throttle.Result{one}}, asked, err
}

// returnable is how much of a difference is settled that is known some time after the estimate: what has left the limit by itself
// isn't given back. resets is after how long nothing of it is in use.
func returnable(by Limiter, difference int64, age, resets time.Duration) int64 {
	info, _ := by.Info() // it has decided
	if info.Span == 0 {  // an Unlimited plan, which SettleAll leaves out
		return difference
	}
	if _, drains := by.(throttle.Rate); drains {
		drained := math.Ceil(float64(info.Units) * float64(age) / float64(info.Span))
		return difference + int64(min(drained, float64(max(-difference, 0))))
	}
	if age >= resets {
		return max(difference, 0)
	}
	return difference
}

// settle corrects the estimates of a request that was served, even if the caller has gone.
func (l *limiter) settle(r *http.Request, asked []ask, all throttle.AllResult, began time.Time, seen *recorder) {
	response := Response{Status: seen.status, Bytes: seen.bytes, Header: seen.Header()}
	var parts []throttle.Part
	for i, a := range asked {
		if rule := &l.rules[i]; rule.Charge != nil {
			more := returnable(a.by, rule.Charge(r, response)-a.cost, time.Since(began), all.Each[i].ResetAfter)
			if more != 0 {
				parts = append(parts, a.by.(parted).Part(a.key, more))
			}
		}
	}
	if len(parts) > 0 {
		_, _ = l.client.SettleAll(context.WithoutCancel(r.Context()), parts...)
	}
}

// recorder notes the status and the length of a response.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
	head   bool // the body is not sent
}

// Unwrap lets http.ResponseController find the writer.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 && status >= 200 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(p []byte) (int, error) {
	r.status = cmp.Or(r.status, http.StatusOK)
	n, err := r.ResponseWriter.Write(p)
	if !r.head {
		r.bytes += int64(n)
	}
	return n, err
}

// Flush is for handlers that look for an http.Flusher.
func (r *recorder) Flush() { _ = r.FlushError() }

// FlushError is for http.ResponseController.
func (r *recorder) FlushError() error {
	r.status = cmp.Or(r.status, http.StatusOK)
	return http.NewResponseController(r.ResponseWriter).Flush()
}

// Hijack is for handlers that look for an http.Hijacker, such as WebSockets.
func (r *recorder) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, b, err := http.NewResponseController(r.ResponseWriter).Hijack()
	if err == nil {
		r.status = cmp.Or(r.status, http.StatusSwitchingProtocols)
	}
	return conn, b, err
}

// failed says whether a request goes on without a decision.
func (l *limiter) failed(w http.ResponseWriter, r *http.Request, err error) bool {
	switch {
	case l.o.Failed != nil:
		return l.o.Failed(w, r, err)
	case r.Context().Err() != nil || errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, throttle.ErrUnavailable):
		w.WriteHeader(http.StatusServiceUnavailable) // for the log: nobody waits for the response
		return false
	case throttle.Undecided(err):
		return true
	}
	http.Error(w, "the rate limiter does not work", http.StatusInternalServerError)
	return false
}

func (l *limiter) setHeaders(h http.Header, asked []ask, all throttle.AllResult) {
	if after := all.RetryAfterSeconds(); !all.Allowed && after > 0 {
		h.Set("Retry-After", strconv.FormatInt(after, 10))
	}
	if all.Source == "failed-open" || all.Source == "failed-closed" {
		return // nothing is known of the limiter
	}
	switch {
	case l.o.NoHeaders:
	case !l.o.XRateLimit:
		var states, policies []string
		for i := range all.Each {
			r, info := &all.Each[i], l.infos[i]
			if r.Source == "limit" { // it has no numbers
				continue
			}
			if l.varies {
				info, _ = asked[i].by.Info()
				policies = append(policies, policy(&info, r.Limit))
			}
			_, drains := asked[i].by.(throttle.Rate)
			states = append(states, state(&info, r, drains))
		}
		if !l.varies {
			policies = append(policies, l.policies)
		}
		if len(states) > 0 {
			h.Set("RateLimit-Policy", strings.Join(policies, ", "))
			h.Set("RateLimit", strings.Join(states, ", "))
		}
	case all.Source != "limit":
		h.Set("X-RateLimit-Limit", strconv.FormatInt(all.Limit, 10))
		h.Set("X-RateLimit-Remaining", strconv.FormatInt(all.Remaining, 10))
		h.Set("X-RateLimit-Reset", strconv.FormatInt(seconds(all.ResetAfter), 10))
	}
}

// policy returns a rule's item of RateLimit-Policy: q is how many units fit together, w the time in which that many drain.
func policy(info *throttle.Info, limit int64) string {
	item := fmt.Sprintf("%q;q=%d", info.Name, limit)
	if info.Units > 0 {
		item += fmt.Sprintf(";w=%d", seconds(info.Span))
	}
	return item
}

// state returns a rule's item of RateLimit: r is what remains. t is the time until there is more, where that is known.
func state(info *throttle.Info, r *throttle.Result, drains bool) string {
	item, next := fmt.Sprintf("%q;r=%d", info.Name, r.Remaining), info.Span
	if drains && info.Units > 0 { // one by one
		next = time.Duration(math.Ceil(float64(info.Span) / float64(info.Units)))
	}
	switch {
	case r.RetryAfter > 0 && r.RetryAfter != throttle.Never:
		return item + fmt.Sprintf(";t=%d", seconds(r.RetryAfter))
	case r.ResetAfter > 0 && next > 0:
		return item + fmt.Sprintf(";t=%d", seconds(min(next, r.ResetAfter)))
	}
	return item
}

// seconds rounds up.
func seconds(d time.Duration) int64 { return int64(math.Ceil(d.Seconds())) }

// problem is the body of a denial: RFC 9457, with a type that the draft of RateLimit registers.
type problem struct {
	Type     string   `json:"type"`
	Title    string   `json:"title"`
	Status   int      `json:"status"`
	Violated []string `json:"violated-policies,omitempty"`
}

const problemTypes = "https://iana.org/assignments/http-problem-types#"

func (l *limiter) denied(w http.ResponseWriter, r *http.Request, all throttle.AllResult) {
	if l.o.Denied != nil {
		l.o.Denied(w, r, all.Result)
		return
	}
	p := problem{Type: problemTypes + "quota-exceeded", Title: "Too many requests", Status: http.StatusTooManyRequests}
	if all.Source == "failed-closed" { // nobody knows whether a limit was exceeded
		p.Type, p.Title, p.Status = problemTypes+"temporary-reduced-capacity", "The rate limiter is unavailable", http.StatusServiceUnavailable
		all.Each = nil
	}
	for i := range all.Each {
		if !all.Each[i].Allowed {
			p.Violated = append(p.Violated, l.infos[i].Name)
		}
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p)
}
