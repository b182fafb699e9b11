package main

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"gothrottle/throttle"
)

// lane is one limiter of a session, with what the page knows of it.
type lane struct {
	spec  Spec
	keys  [2]string // of the two clients; the first is everybody's unless each client has its own
	own   bool
	peaks [2]peaks

	Admitted int64  `json:"admitted"`
	Denied   int64  `json:"denied"`
	Errors   int64  `json:"errors"`
	Units    int64  `json:"units"` // admitted units
	Peak     Peak   `json:"peak"`
	CLI      string `json:"cli"`
	Go       string `json:"go"`
	Words    []Word `json:"words"`
	Error    string `json:"error,omitempty"`
}

// Point is what one call or one look told. Times are milliseconds since the session began.
type Point struct {
	Lane   int     `json:"lane"`
	AtMS   float64 `json:"at"`
	Client int     `json:"client"`
	Key    int     `json:"key"`              // 0 or 1: which of the lane's keys
	Call   string  `json:"call,omitempty"`   // admitted, denied or part; "" of a look
	Left   []int64 `json:"left"`             // remaining, of each limiter
	Limits []int64 `json:"limits"`           // the limit of each
	Ends   int64   `json:"ends,omitempty"`   // of a quota: when its window ends; 0 if none runs
	Wait   int64   `json:"wait,omitempty"`   // RESERVE: how long until the slot
	Locked int64   `json:"locked,omitempty"` // LOCKOUT: how long nothing is admitted
	Shadow bool    `json:"shadow,omitempty"` // a policy in SHADOW would have denied the call
}

// newLane returns a lane whose keys begin with "playground" and the session, as in "playground:1f2e3d4c". The keys of a
// policy begin with the policy's name and the session.
func newLane(spec Spec, session string, n int) *lane {
	first := "playground"
	if spec.Kind == "policy" {
		first = spec.Policy
	}
	key := fmt.Sprintf("%s:%s:%d:%s", first, session, n+1, spec.Kind)
	l := &lane{spec: spec, keys: [2]string{key, key + ":b"}}
	for i := range l.peaks {
		if spec.Kind != "all" && spec.Kind != "policy" && spec.Mode != "reserve" { // a reserved unit counts later than its call
			l.peaks[i].period = time.Duration(spec.Period) * time.Millisecond
		}
	}
	return l
}

func (l *lane) key(client int) string {
	if l.own {
		return l.keys[client]
	}
	return l.keys[0]
}

// allKeys are the keys that the lane may have written.
func (l *lane) allKeys() []string {
	return append(l.spec.keys(l.keys[0]), l.spec.keys(l.keys[1])...)
}

// call asks once and reads the reply.
func (l *lane) call(ctx context.Context, s *Session, client int) Point {
	key := l.key(client)
	s.wire.forget()
	sent := time.Since(s.began)
	err := l.spec.ask(ctx, s.client, key)
	replied := time.Since(s.began)
	if l.Go = l.spec.goLine(key); s.wire.words != nil {
		l.CLI = cliLine(s.cli, s.wire.words)
	}
	p := l.read(s, client, replied)
	if l.Error = ""; err != nil {
		l.Errors++
		l.Error = err.Error()
		return p
	}
	l.Words = l.spec.inWords(s.wire.reply)
	p.Call = l.outcome(s.wire.reply)
	if p.Call == "denied" {
		l.Denied++
		return p
	}
	granted := l.granted(s.wire.reply)
	l.Admitted++
	l.Units += granted
	own := &l.peaks[0]
	if l.own {
		own = &l.peaks[client]
	}
	own.add(admission{sent, replied, granted})
	if own.most.Units > l.Peak.Units {
		l.Peak = own.most
	}
	return p
}

func (l *lane) granted(r Reply) int64 {
	if l.spec.Mode == "upto" && len(r.Ints) > 5 {
		return r.Ints[5]
	}
	return l.spec.Quantity
}

func (l *lane) outcome(r Reply) string {
	switch {
	case len(r.Ints) == 0 || r.Ints[0] != 0:
		return "denied"
	case l.granted(r) < l.spec.Quantity:
		return "part"
	}
	return "admitted"
}

// look peeks, for the curve of what remains.
func (l *lane) look(ctx context.Context, s *Session, client int) (Point, error) {
	s.wire.forget()
	err := l.spec.peek(ctx, s.client, l.key(client))
	return l.read(s, client, time.Since(s.began)), err
}

// read makes a point of the reply that the wire has kept.
func (l *lane) read(s *Session, client int, at time.Duration) Point {
	p := Point{Client: client, AtMS: float64(at.Microseconds()) / 1000}
	if l.own {
		p.Key = client
	}
	r := s.wire.reply
	if len(r.Ints) < 5 {
		return p
	}
	for i, ints := range r.limiters() {
		p.Left, p.Limits = append(p.Left, ints[2]), append(p.Limits, ints[1])
		p.Shadow = p.Shadow || l.spec.Kind == "policy" && r.Ints[0] == 0 && ints[0] != 0
		if ends := at.Milliseconds() + ints[4]; l.quota(i) && ints[4] > 0 {
			p.Ends = ends
		}
	}
	switch {
	case l.spec.Mode == "reserve" && len(r.Ints) > 5:
		p.Wait = max(r.Ints[5], 0)
	case l.spec.Mode == "lockout" && r.Ints[0] != 0:
		p.Locked = max(r.Ints[3], 0)
	}
	return p
}

// quota reports whether the limiter with this index is a fixed window.
func (l *lane) quota(i int) bool {
	if l.spec.Kind == "all" {
		return i < len(l.spec.Clauses) && l.spec.Clauses[i].Kind == "quota"
	}
	return l.spec.Kind == "quota"
}

// info asks GO.INFO of the keys that the lane has, without those that do not exist.
func (l *lane) info(ctx context.Context, rdb *redis.Client) []Info {
	var infos []Info
	seen := map[string]bool{}
	for _, key := range l.allKeys() {
		if seen[key] || !l.own && key == l.keys[1] {
			continue
		}
		seen[key] = true
		if i := askInfo(ctx, rdb, key); i.Fields != nil || i.Error != "" {
			infos = append(infos, i)
		}
	}
	return infos
}

var _ throttle.Processor = (*wire)(nil)
