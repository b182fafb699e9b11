package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// watchEvery is how often a server is asked while a page watches it.
const watchEvery = time.Second

// watcher reads a server's counters. However many pages watch, it asks once per watchEvery, and not at all while none
// does. It sends INFO, GO.TOP and GO.INFO only.
type watcher struct {
	rdb *redis.Client

	mu    sync.Mutex
	asked time.Time
	last  Watched
}

func newWatcher(rdb *redis.Client) *watcher { return &watcher{rdb: rdb} }

// Watched is what the server tells.
type Watched struct {
	AtMS     int64     `json:"at"` // Unix time
	Error    string    `json:"error,omitempty"`
	Version  string    `json:"version"`
	Panics   int64     `json:"panics"`
	LeadUS   int64     `json:"lead"`
	TopKeys  int64     `json:"topKeys"` // 0: the server counts no keys
	Commands []Counter `json:"commands"`
	Top      []TopKey  `json:"top"`
}

// Counter has the counts of one command since the module was loaded.
type Counter struct {
	Name     string `json:"name"`
	Admitted int64  `json:"admitted"`
	Limited  int64  `json:"limited"`
	Other    int64  `json:"other"`
	Errors   int64  `json:"errors"`
	Shadowed int64  `json:"shadowed"`
}

// TopKey is a row of GO.TOP.
type TopKey struct {
	Key    string `json:"key"`
	Denied int64  `json:"denied"`
	Error  int64  `json:"error"`
}

// read asks the server, or returns what it told just now.
func (w *watcher) read(ctx context.Context) Watched {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.asked) < watchEvery-50*time.Millisecond {
		return w.last
	}
	w.asked = time.Now()
	w.last = w.ask(context.WithoutCancel(ctx)) // other pages are told it too
	return w.last
}

func (w *watcher) ask(ctx context.Context) Watched {
	seen := Watched{AtMS: time.Now().UnixMilli()}
	info, err := w.section(ctx)
	if err != nil {
		seen.Error = err.Error()
		return seen
	}
	seen.fill(info)
	if seen.TopKeys == 0 {
		return seen // GO.TOP would be an error, which the server counts
	}
	rows, err := w.rdb.Do(ctx, "GO.TOP", 10).Slice()
	if err != nil {
		seen.Error = err.Error()
		return seen
	}
	for _, row := range rows {
		if r, ok := row.([]any); ok && len(r) == 3 {
			denied, _ := r[1].(int64)
			low, _ := r[2].(int64)
			seen.Top = append(seen.Top, TopKey{fmt.Sprint(r[0]), denied, low})
		}
	}
	return seen
}

// section returns the module's section of INFO, by field without the module's name.
func (w *watcher) section(ctx context.Context) (map[string]string, error) {
	for _, name := range []string{"gothrottle", "redis-cell"} {
		text, err := w.rdb.Info(ctx, name).Result()
		if err != nil {
			return nil, err
		}
		fields := map[string]string{}
		for line := range strings.SplitSeq(text, "\r\n") {
			if field, value, ok := strings.Cut(line, ":"); ok {
				if field, ok := strings.CutPrefix(field, name+"_"); ok {
					fields[field] = value
				}
			}
		}
		if len(fields) > 0 {
			return fields, nil
		}
	}
	return nil, fmt.Errorf("the server at this address has not loaded gothrottle")
}

// fill reads the fields.
func (s *Watched) fill(info map[string]string) {
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(info[name], 10, 64)
		return n
	}
	s.Version, s.Panics = info["version"], number("panics")
	s.LeadUS, s.TopKeys = number("clock_lead_us"), number("top_keys")
	for field := range info {
		name, ok := strings.CutSuffix(field, "_admitted")
		if !ok {
			continue
		}
		s.Commands = append(s.Commands, Counter{
			Name: commandName(name), Admitted: number(field), Limited: number(name + "_limited"), Other: number(name + "_other"),
			Errors: number(name + "_errors"), Shadowed: number(name + "_shadowed"),
		})
	}
	slices.SortFunc(s.Commands, func(a, b Counter) int { return strings.Compare(a.Name, b.Name) })
}

// commandName turns the name in a field into the command's: throttle_ro into GO.THROTTLE_RO.
func commandName(field string) string {
	if rest, ok := strings.CutPrefix(field, "cl_"); ok {
		return "CL." + strings.ToUpper(rest)
	}
	return "GO." + strings.ToUpper(field)
}

// watch sends the counters until the page goes. If there are too many pages, the page is told so, and its browser asks again
// by itself.
func (a *app) watch(w http.ResponseWriter, r *http.Request) {
	full := a.enter()
	if full == nil {
		defer a.leave()
	}
	told := false
	events(w, r, watchEvery, func() (any, error) {
		switch {
		case full == nil:
			return a.watcher.read(r.Context()), nil
		case told:
			return nil, full
		}
		told = true
		return Watched{Error: full.Error()}, nil
	})
}
