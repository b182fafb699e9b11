package main

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"gothrottle/throttle"
)

// What a session may keep for a page that does not read, and how often it looks at its limiters.
const (
	maxPending  = 5000
	lookEvery   = 200 * time.Millisecond
	infoEvery   = time.Second
	idleEvery   = 5 * time.Second // both, after a minute without a call
	callTimeout = 250 * time.Millisecond
	mostLate    = 100 * time.Millisecond // a call that comes later delays the rest of the schedule
)

// Session is one page that sends traffic. Its methods may be called concurrently; its calls go one after another.
type Session struct {
	ID     string
	rdb    *redis.Client
	wire   *wire
	client *throttle.Client
	cli    string // what stands before a command in a shell
	began  time.Time

	streamed atomic.Bool // a page reads what happens

	mu       sync.Mutex
	lanes    []*lane
	points   []Point
	skipped  int64 // calls that were not sent, because they were too many
	second   int64
	sent     int
	stop     context.CancelFunc
	running  int // grows with each run; a run that has ended does not end a later one
	isRun    bool
	era      int // grows when the limiters begin anew
	lastUsed time.Time
	looked   time.Time
	infoed   time.Time
	written  map[string]bool
	closed   bool
}

func newSession(id, cli string, rdb *redis.Client, to throttle.Processor) (*Session, error) {
	w := &wire{to: to}
	client, err := throttle.New(w, throttle.Options{Timeout: callTimeout, NoCoalescing: true})
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &Session{ID: id, rdb: rdb, wire: w, client: client, cli: cli, began: now, lastUsed: now, written: map[string]bool{}}, nil
}

// SetLanes takes new limiters, and deletes the keys of the old ones. The traffic stops.
func (s *Session) SetLanes(ctx context.Context, specs []Spec) error {
	s.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lanes = nil
	for i, spec := range specs {
		s.lanes = append(s.lanes, newLane(spec, s.ID, i))
	}
	return s.anew(ctx)
}

// Reset deletes the keys and forgets the counts.
func (s *Session) Reset(ctx context.Context) error {
	s.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, l := range s.lanes {
		s.lanes[i] = newLane(l.spec, s.ID, i)
	}
	return s.anew(ctx)
}

// anew deletes what was written and looks once at each limiter: so the page knows the limits, and errors come early.
func (s *Session) anew(ctx context.Context) error {
	s.points, s.skipped, s.lastUsed = nil, 0, time.Now()
	s.era++
	if err := s.deleteKeys(ctx); err != nil {
		return err
	}
	for i, l := range s.lanes {
		p, err := l.look(ctx, s, 0)
		if err != nil {
			return fmt.Errorf("limiter %d: %w", i+1, err)
		}
		s.add(i, p)
		l.CLI, l.Go = cliLine(s.cli, l.spec.words(l.keys[0])), l.spec.goLine(l.keys[0])
	}
	return nil
}

func (s *Session) deleteKeys(ctx context.Context) error {
	if len(s.written) == 0 {
		return nil
	}
	keys := make([]string, 0, len(s.written))
	for key := range s.written {
		keys = append(keys, key)
	}
	if err := s.rdb.Del(ctx, keys...).Err(); err != nil {
		return err
	}
	clear(s.written)
	return nil
}

// Start sends traffic until it ends, is stopped, or another one starts.
func (s *Session) Start(t Traffic) error {
	s.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.lanes) == 0 {
		return fmt.Errorf("there is no limiter to send traffic to")
	}
	if calls := t.Rate * float64(len(s.lanes)); t.Pattern != "bursts" && t.Pattern != "boundary" && calls > maxCallsPerSecond {
		return fmt.Errorf("%d limiters get at most %d calls per second each", len(s.lanes), maxCallsPerSecond/len(s.lanes))
	}
	var specs []Spec
	for _, l := range s.lanes {
		l.own = t.Own && t.Pattern == "clients"
		specs = append(specs, l.spec)
	}
	aim := aimOf(specs)
	ctx, cancel := context.WithCancel(context.Background())
	s.stop, s.isRun = cancel, true
	s.running++
	go s.run(ctx, s.running, t.steps(aim), beforeAttack(t, aim, time.Now()))
	return nil
}

// run sends the calls of a schedule at their times.
func (s *Session) run(ctx context.Context, number int, steps iter.Seq[step], wait time.Duration) {
	began := time.Now().Add(wait)
	for st := range steps {
		if !sleep(ctx, time.Until(began.Add(st.at))) {
			return
		}
		if late := time.Since(began.Add(st.at)); late > mostLate {
			began = began.Add(late) // otherwise all calls that are due would come at once
		}
		s.Call(ctx, st.client)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == number {
		s.isRun = false
	}
}

// sleep reports false if the context ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}

// Stop ends the traffic.
func (s *Session) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop != nil {
		s.stop()
	}
	s.stop, s.isRun = nil, false
	s.running++
}

// Call sends one call to each limiter, unless there were too many in this second.
func (s *Session) Call(ctx context.Context, client int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || ctx.Err() != nil {
		return
	}
	if now := time.Now().Unix(); now != s.second {
		s.second, s.sent = now, 0
	}
	if s.sent += len(s.lanes); s.sent > maxCallsPerSecond || len(s.points) >= maxPending {
		s.skipped++
		return
	}
	s.lastUsed = time.Now()
	for i, l := range s.lanes {
		for _, key := range l.spec.keys(l.key(client)) {
			s.written[key] = true
		}
		s.add(i, l.call(context.WithoutCancel(ctx), s, client))
	}
}

func (s *Session) add(lane int, p Point) {
	p.Lane = lane
	s.points = append(s.points, p)
}

// State is what the page is told, about twenty times a second.
type State struct {
	NowMS   float64  `json:"now"` // since the session began
	Era     string   `json:"era"` // differs after the limiters have begun anew: what came before counts no more
	Running bool     `json:"running"`
	Skipped int64    `json:"skipped"`
	Points  []Point  `json:"points"`
	Lanes   []*lane  `json:"lanes"`
	Titles  []string `json:"titles"`
	Infos   [][]Info `json:"infos,omitempty"` // about once a second
}

// Take returns what is new since the last Take. It looks at the limiters and asks GO.INFO when it is time.
func (s *Session) Take(ctx context.Context) State {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	var infos [][]Info
	look, ask := lookEvery, infoEvery
	if now.Sub(s.lastUsed) >= time.Minute {
		look, ask = idleEvery, idleEvery
	}
	if now.Sub(s.looked) >= look {
		s.looked = now
		s.lookAtAll(ctx)
	}
	if now.Sub(s.infoed) >= ask {
		s.infoed = now
		for _, l := range s.lanes {
			infos = append(infos, l.info(ctx, s.rdb))
		}
	}
	state := State{Era: fmt.Sprint(s.ID, s.era), Running: s.isRun, Skipped: s.skipped, Points: s.points, Infos: infos, Titles: []string{}}
	for _, l := range s.lanes {
		shown := *l
		state.Lanes = append(state.Lanes, &shown)
		state.Titles = append(state.Titles, l.spec.title())
	}
	s.points = nil
	state.NowMS = float64(time.Since(s.began).Microseconds()) / 1000
	return state
}

func (s *Session) lookAtAll(ctx context.Context) {
	for i, l := range s.lanes {
		for client := range 2 {
			if client == 1 && !l.own {
				continue
			}
			if p, err := l.look(ctx, s, client); err == nil {
				s.add(i, p)
			}
		}
	}
}

// Ended reports whether Close was called.
func (s *Session) Ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// Close stops the traffic and deletes the keys.
func (s *Session) Close(ctx context.Context) error {
	s.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.deleteKeys(ctx)
}
