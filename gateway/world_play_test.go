package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"gothrottle/commands/memory"
	"gothrottle/commands/memory/resp"
	"gothrottle/funnel"
)

// play is a world that runs.
type play struct {
	*world
	*side             // that is asked now
	sides  [2]*side   // of one server
	t      *testing.T // the bubble's
	server *resp.Server
	first  []rule // before all changes
	step   int
	calls  int
	fault  string // "": the server works
	since  time.Time
	admits sync.Map // the words of the calls that the server has admitted since the request began
	owes   []owed   // the oldest first
}

// side is one gateway, and what is known of it.
type side struct {
	*gateway
	due   int              // requests whose costs must be reported
	told  map[string]int64 // what the metrics must say; nil: nobody knows any more
	holds map[string]int   // and what became of them
}

// failure is a property that does not hold.
type failure struct{ property, why string }

// fault is what happens to the server.
type fault struct {
	resp.Faults
	deaf, refuses bool // it decides nothing; and until somebody changes the set-up
	once          func(s *resp.Server)
}

var faults = map[string]fault{
	"silent": {Faults: resp.Faults{Silent: true}, deaf: true}, "mute": {Faults: resp.Faults{Mute: true}, deaf: true},
	"LOADING": {Faults: resp.Faults{Error: "LOADING soon"}, deaf: true}, "odd": {Faults: resp.Faults{Error: "PROXY odd"}, deaf: true},
	"refused":  {Faults: resp.Faults{Refuse: true}, deaf: true, once: func(s *resp.Server) { s.Cut() }},
	"bare":     {Faults: resp.Faults{NoModule: true, NoScript: true}, deaf: true, refuses: true},
	"NOAUTH":   {Faults: resp.Faults{Error: "NOAUTH who?"}, deaf: true, refuses: true},
	"NOPERM":   {Faults: resp.Faults{Reply: func([]string) (any, bool) { return memory.Error("NOPERM no"), true }}, deaf: true, refuses: true},
	"READONLY": {Faults: resp.Faults{Writes: "READONLY a replica"}, refuses: true}, // it decides looks
	"slow":     {Faults: resp.Faults{Slow: 20 * time.Millisecond}}, "far": {Faults: resp.Faults{Far: 40 * time.Millisecond}},
	"stall": {once: func(s *resp.Server) { s.Stall(70 * time.Millisecond) }}, "restart": {once: (*resp.Server).Restart},
	"cut before": {once: func(s *resp.Server) { s.CutBefore(1) }}, "cut after": {once: func(s *resp.Server) { s.CutAfter(1) }},
}

// run plays the world, and returns how many requests it made until a property failed. What is left after the gateway's end
// fails the bubble.
func (w *world) run(t *testing.T) (calls int, wrong *failure) {
	bubble(t, func(t *testing.T) {
		own := *w
		own.rules = slices.Clone(w.rules)
		p := &play{world: &own, first: w.rules, t: t}
		n := resp.NewNetwork(resp.Options{Ran: func(r resp.Run) {
			for _, word := range r.Words {
				if reply, _ := r.Reply.([]any); len(reply) > 0 && reply[0] == int64(0) {
					p.admits.Store(word, true)
				}
			}
		}})
		p.server = n.Add("10.0.0.1:6379")
		p.becomes(fault{})
		for i := range p.sides {
			p.sides[i] = &side{told: map[string]int64{}, holds: map[string]int{}, gateway: inside(t, p.server, w.yaml(), fmt.Sprint("SHADOW_MODE=", w.shadow),
				fmt.Sprint("SCRIPT_MODE=", w.script), "LIMIT_RESPONSE_HEADERS_ENABLED=true", "LOCAL_KEYS=1000")}
		}
		require.Empty(t, p.server.Memory().Keys(), "the gateway's probe")
		defer func() {
			var is bool
			calls = p.calls
			if e := recover(); e == nil {
				return // the gateway must close its connections
			} else if wrong, is = e.(*failure); !is {
				panic(e)
			}
			n.Close()
		}()
		p.playSteps()
	})
	return calls, wrong
}

func (p *play) fail(property, format string, args ...any) {
	panic(&failure{property, fmt.Sprintf("step %d: ", p.step) + fmt.Sprintf(format, args...)})
}

// playSteps makes all steps.
func (p *play) playSteps() {
	for i, s := range p.steps {
		p.step = i
		time.Sleep(time.Microsecond)
		p.side = p.sides[s.gateway]
		p.makes(s)
	}
	p.step++
	p.heal()
	for _, o := range p.owes {
		p.settles(o, 100)
	}
	time.Sleep(2*watched + 10*time.Minute)
	for _, key := range p.server.Memory().Keys() {
		if n, _ := named((&asked{}).info(p.server.Memory(), key))["held"].(int64); strings.HasSuffix(key, ":held") && n > 0 {
			p.fail("held", "something is held long after all has been reported: %s", key)
		}
	}
	for _, p.side = range p.sides {
		p.metrics()
		p.noticed(false)
	}
}

func (p *play) makes(s step) {
	switch s.does {
	case "ask":
		p.askEnvoy(s.asks)
	case "check":
		p.askProxy(s.asks, s.value)
	case "settle":
		if i := s.value * (len(p.owes) - 1); len(p.owes) > 0 {
			o := p.owes[i]
			p.owes = slices.Delete(p.owes, i, i+1)
			if p.settles(o, s.n); s.n == 50 { // a proxy may report twice
				p.settles(o, s.n)
			}
		}
	case "pass":
		time.Sleep(s.wait)
	case "flood":
		p.flood()
	default:
		p.heal()
		switch s.does {
		case "fault":
			p.fault, p.since = s.fault, time.Now()
			p.becomes(faults[s.fault])
		case "double", "spoil", "unshadow":
			p.reload(s.does)
		}
	}
}

func (p *play) becomes(f fault) {
	p.server.Change(func(now *resp.Faults) { *now = f.Faults; now.NoModule = now.NoModule || p.script })
	if f.once != nil {
		f.once(p.server)
	}
}

// heal ends a fault, and waits until the gateway decides by its server again.
func (p *play) heal() {
	if p.fault == "" {
		return
	}
	if f := faults[p.fault]; (f.deaf || f.refuses) && time.Since(p.since) > 2*watched {
		p.noticed(true)
	}
	p.becomes(fault{})
	for range 20 {
		time.Sleep(time.Second)
		var all sync.WaitGroup
		var failed atomic.Bool
		for i := range 16 { // connections may be broken
			all.Go(func() {
				if p.sides[i%2].decides.Probe(context.Background()) != nil {
					failed.Store(true)
				}
			})
		}
		if all.Wait(); !failed.Load() && p.healthy() {
			p.fault = ""
			return
		}
	}
	p.fail("recovers", "20 s after %s the gateway is not well", p.fault)
}

// noticed fails if the gateway doesn't know that the server is unavailable, or refuses it. It stays healthy.
func (p *play) noticed(away bool) {
	shown := strings.Contains(p.page(p.t, p.debug+"/metrics"), "\ngothrottle_gateway_server_away 1\n")
	if shown != away || !p.healthy() {
		p.fail("noticed", "with the fault %q the server is unavailable: %t, and the gateway healthy: %t", p.fault, shown, p.healthy())
	}
}

// healthy asks over HTTP and gRPC.
func (p *play) healthy() bool {
	web := p.get(p.t, p.web+"/healthcheck")
	text := body(p.t, web)
	status, err := p.answers.Health.Check(context.Background(), &healthpb.HealthCheckRequest{Service: "ratelimit"})
	well := web.StatusCode == 200 && text == map[bool]string{false: "OK\n", true: "OK, by the script\n"}[p.script]
	if err != nil || well != (status.Status == healthpb.HealthCheckResponse_SERVING) {
		p.fail("health", "HTTP says %d, %s; gRPC %s", web.StatusCode, text, status)
	}
	return well
}

// reload changes the file of rules.
func (p *play) reload(how string) {
	var ended []int
	wait := time.Duration(0)
	for i := range p.rules {
		l := &p.rules[i]
		switch {
		case how == "double":
			l.units *= 2
		case how == "unshadow" && l.shadow && l.units > 0 && l.period <= time.Minute:
			l.shadow, ended = false, append(ended, i)
			wait = max(wait, l.drains()+l.lockout, p.first[i].drains()) // what the first rate has charged drains by it
			if l.also != nil {
				wait = max(wait, l.also.drains())
			}
		}
	}
	text := p.yaml()
	if how == "spoil" { // the rules before it stay
		text = strings.Replace(text, "rate_limit", "ratelimit", 1)
	}
	for _, one := range p.sides {
		writeFile(p.t, one.folder+"/rules.yaml", text)
	}
	time.Sleep(watched + time.Second + wait)
	for _, i := range ended { // so long ago that a full limit has drained
		for value := range 2 {
			d := p.of(ask{rule: i, value: value, hits: max(1, p.rules[i].estimate)})
			if s := d.look(p.server.Memory()); d.decide(s).over {
				p.fail("shadow", "long after its shadow has ended, rule %d refuses a hit: %+v", i, s)
			}
		}
	}
}

// flood asks for many keys while the server is unavailable.
func (p *play) flood() {
	i := slices.IndexFunc(p.rules, func(l rule) bool { return !l.http && l.failure == "local" && l.algorithm != "concurrency" })
	if i < 0 || !faults[p.fault].deaf {
		return
	}
	for n := range 11 {
		var asks []*asked
		for m := range 100 {
			asks = append(asks, p.of(ask{rule: i, value: 100*n + m + 2, hits: 1}))
		}
		if _, err := p.ShouldRateLimit(context.Background(), p.request(asks)); err != nil {
			p.fail("answers", "%s", err)
		}
	}
	p.told = nil
	if n := p.decides.Memory.Len(funnel.Micros(time.Now().UnixMicro())); n > 1000 {
		p.fail("memory", "%d keys are kept", n)
	}
}

// theirs has the sums of envoyproxy/ratelimit, by the first parts of the rules' names.
func theirs(told map[string]int64) map[string]int64 {
	sums := map[string]int64{}
	for line, n := range told {
		m := regexp.MustCompile(`^hits_total{outcome="(\w+)",rule="d\.(\w+)(?:\.(\w+))?[^"]*"}`).FindStringSubmatch(line)
		if m == nil {
			continue
		}
		for _, name := range map[string][]string{"ok": {"within_limit"}, "over_limit": {"over_limit"}, "shadow": {"over_limit", "shadow_mode"}}[m[1]] {
			sums[fmt.Sprintf("%s{domain=\"d\",key1=%q,key2=%q}", name, m[2], m[3])] += n
		}
		sums[fmt.Sprintf("total_hits{domain=\"d\",key1=%q,key2=%q}", m[2], m[3])] += n
	}
	return sums
}

// counted matches a line of the metrics.
var counted = regexp.MustCompile(`(?m)^gothrottle_gateway_((?:decisions|hits|near_limit|fallbacks)_total\S+) (\d+)`)

// metrics compares the metrics with what was charged.
func (p *play) metrics() {
	said, page := map[string]int64{}, p.page(p.t, p.debug+"/metrics")
	if line := fmt.Sprintf("settles_total{outcome=\"due\"} %d\n", p.due); !strings.Contains(page, line) {
		p.fail("metrics", "want %s", line)
	}
	for _, outcome := range []string{"held", "returned", "settled", "already", "overdue"} {
		line := fmt.Sprintf("holds_total{outcome=%q} %d\n", outcome, p.holds[outcome])
		if p.told != nil && !strings.Contains(page, line) {
			p.fail("metrics", "want %s", line)
		}
	}
	for line, n := range theirs(p.told) {
		if line = fmt.Sprintf("\nratelimit_service_rate_limit_%s %d\n", line, n); !strings.Contains(page, line) {
			p.fail("metrics", "want %s", line)
		}
	}
	for _, m := range counted.FindAllStringSubmatch(page, -1) {
		said[m[1]], _ = strconv.ParseInt(m[2], 10, 64)
		if p.told != nil {
			p.told[m[1]] += 0
		}
	}
	for line, n := range p.told {
		if said[line] != n {
			p.fail("metrics", "%s is %d, want %d", line, said[line], n)
		}
	}
}
