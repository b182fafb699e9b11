package main

import (
	"context"
	"crypto/rand"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed page
var files embed.FS

const (
	maxPages     = 5 // a browser has 6 connections to one address: a stream for each page, and one for all else
	streamEvery  = 50 * time.Millisecond
	openWithin   = 10 * time.Second // a session whose page has not come for its stream by then ends
	deletionTime = 3 * time.Second
)

// app serves the page.
type app struct {
	rdb      *redis.Client
	about    About
	watcher  *watcher
	pages    chan struct{} // holds one element for each session, and for each stream of Watch
	mu       sync.Mutex
	sessions map[string]*Session
	closed   bool
}

// About tells the page what it may do.
type About struct {
	Play     bool     `json:"play"` // the page may send traffic
	Addr     string   `json:"addr"`
	CLI      string   `json:"cli"`
	Version  string   `json:"version"`
	Policies []Policy `json:"policies"`
}

// Policy is a policy of the server that the page may call.
type Policy struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// playgroundPolicies returns the policies whose names begin with "playground". Calls of others would touch limiters that
// are not the playground's.
func playgroundPolicies(value string) []Policy {
	policies := []Policy{}
	for _, policy := range strings.Split(value, ";") {
		name, text, _ := strings.Cut(strings.TrimSpace(policy), " ")
		if strings.HasPrefix(name, "playground") {
			policies = append(policies, Policy{name, text})
		}
	}
	return policies
}

func newApp(rdb *redis.Client, about About) *app {
	return &app{rdb: rdb, about: about, watcher: newWatcher(rdb), pages: make(chan struct{}, maxPages), sessions: map[string]*Session{}}
}

func (a *app) handler() http.Handler {
	page, _ := fs.Sub(files, "page")
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(page))
	mux.HandleFunc("GET /api/about", func(w http.ResponseWriter, r *http.Request) { answer(w, a.about) })
	mux.HandleFunc("GET /api/watch", a.watch)
	mux.HandleFunc("GET /api/key", func(w http.ResponseWriter, r *http.Request) {
		answer(w, askInfo(r.Context(), a.rdb, r.FormValue("key")))
	})
	if a.about.Play {
		mux.HandleFunc("POST /api/sessions", a.open)
		mux.HandleFunc("GET /api/sessions/{id}", a.with(a.stream))
		mux.HandleFunc("POST /api/sessions/{id}/lanes", a.with(a.setLanes))
		mux.HandleFunc("POST /api/sessions/{id}/start", a.with(start))
		mux.HandleFunc("POST /api/sessions/{id}/stop", a.with(func(w http.ResponseWriter, r *http.Request, s *Session) { s.Stop() }))
		mux.HandleFunc("POST /api/sessions/{id}/call", a.with(func(w http.ResponseWriter, r *http.Request, s *Session) { s.Call(r.Context(), 0) }))
		mux.HandleFunc("POST /api/sessions/{id}/reset", a.with(func(w http.ResponseWriter, r *http.Request, s *Session) { refuse(w, s.Reset(r.Context())) }))
		mux.HandleFunc("POST /api/sessions/{id}/end", a.with(a.end))
	}
	return mux
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// refuse replies with the error, if there is one.
func refuse(w http.ResponseWriter, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

// readJSON reads what a page sends. A link can hold any number.
func readJSON(r *http.Request, v any) error {
	if json.NewDecoder(r.Body).Decode(v) != nil {
		return errors.New("the setting cannot be read: its numbers must be whole, and not too large")
	}
	return nil
}

func (a *app) open(w http.ResponseWriter, r *http.Request) {
	id := make([]byte, 4)
	_, _ = rand.Read(id)
	s, err := newSession(hex.EncodeToString(id), a.about.CLI, a.rdb, a.rdb)
	if err == nil {
		err = a.keep(s)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	answer(w, map[string]string{"id": s.ID})
}

// enter counts one more page, or returns an error if there are too many. Without an error, leave must be called once.
func (a *app) enter() error {
	select {
	case a.pages <- struct{}{}:
		return nil
	default:
		return fmt.Errorf("%d tabs show the playground, and more do not fit: close one, and this one goes on", maxPages)
	}
}

func (a *app) leave() { <-a.pages }

func (a *app) keep(s *Session) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return errors.New("the playground ends")
	}
	if err := a.enter(); err != nil {
		return err
	}
	a.sessions[s.ID] = s
	time.AfterFunc(openWithin, func() {
		if !s.streamed.Load() {
			a.forget(s)
		}
	})
	return nil
}

func (a *app) with(do func(http.ResponseWriter, *http.Request, *Session)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		s := a.sessions[r.PathValue("id")]
		a.mu.Unlock()
		if s == nil {
			http.Error(w, "this session has ended: load the page again", http.StatusNotFound)
			return
		}
		do(w, r, s)
	}
}

func (a *app) setLanes(w http.ResponseWriter, r *http.Request, s *Session) {
	var specs []Spec
	err := readJSON(r, &specs)
	if err == nil {
		err = between("the number of limiters", int64(len(specs)), 1, maxLanes)
	}
	for i := range specs {
		if err != nil {
			break
		}
		if err = specs[i].check(a.about.Policies); err != nil && len(specs) > 1 {
			err = fmt.Errorf("limiter %d: %w", i+1, err)
		}
	}
	if err == nil {
		err = s.SetLanes(r.Context(), specs)
	}
	refuse(w, err)
}

func start(w http.ResponseWriter, r *http.Request, s *Session) {
	var t Traffic
	err := readJSON(r, &t)
	if err == nil {
		err = t.check()
	}
	if err == nil {
		err = s.Start(t)
	}
	refuse(w, err)
}

// stream sends what happens in a session until the page goes. Then the session ends.
func (a *app) stream(w http.ResponseWriter, r *http.Request, s *Session) {
	if !s.streamed.CompareAndSwap(false, true) {
		http.Error(w, "another page has this session", http.StatusConflict)
		return
	}
	defer a.forget(s)
	events(w, r, streamEvery, func() (any, error) {
		if s.Ended() {
			return nil, errors.New("the session has ended")
		}
		return s.Take(r.Context()), nil
	})
}

// events sends server-sent events until next fails or the page goes.
func events(w http.ResponseWriter, r *http.Request, every time.Duration, next func() (any, error)) {
	w.Header().Set("Content-Type", "text/event-stream")
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	out := http.NewResponseController(w)
	for {
		v, err := next()
		if err != nil {
			return
		}
		text, err := json.Marshal(v)
		if err != nil {
			return
		}
		if _, err := fmt.Fprintf(w, "data: %s\n\n", text); err != nil || out.Flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-ticker.C:
		}
	}
}

func (a *app) end(w http.ResponseWriter, r *http.Request, s *Session) { a.forget(s) }

// forget ends a session and deletes its keys.
func (a *app) forget(s *Session) {
	a.mu.Lock()
	_, open := a.sessions[s.ID]
	delete(a.sessions, s.ID)
	a.mu.Unlock()
	if open {
		a.leave()
	}
	ctx, cancel := context.WithTimeout(context.Background(), deletionTime)
	defer cancel()
	_ = s.Close(ctx)
}

// close ends all sessions.
func (a *app) close() {
	a.mu.Lock()
	a.closed = true
	var all []*Session
	for _, s := range a.sessions {
		all = append(all, s)
	}
	a.mu.Unlock()
	for _, s := range all {
		a.forget(s)
	}
}
