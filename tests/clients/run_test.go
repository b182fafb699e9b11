package clients

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"gothrottle/commands/memory/resp"
	"gothrottle/throttle"
)

// outcome is how a call ended. Times count from the world's begin.
type outcome struct {
	step
	Began, Ended time.Duration
	Parts        []throttle.Result // two of All
	Err          error
	lease        *throttle.Lease
	lost         time.Duration // when its lease was lost; 0: never
	released     time.Duration // when its lease was closed
	token        int64         // of its lease after that
	tokenErr     error
	hold         string // its id; "" if the server holds nothing
	settled      error  // what Settle returned
}

// run is a world that has run.
type run struct {
	*world
	outcomes  []*outcome
	runs      []resp.Run // of all servers
	epoch     time.Time
	failovers []failover
	clients   [][]any             // each has its limiters, and itself
	left      map[string][]string // the holders of each key on the server after Close
	still     []string            // the keys where something is held a ttl later
	closed    error
	cutAway   int     // how many connections a fault has closed
	charges   []event // see events
	timeline  []event
	again     func(*world) *run // runs another world
}

// play runs a world in frozen time. Leases and limiters are closed in the end, when all faults are over.
func play(t *testing.T, w *world) (r *run) {
	runtime.GC() // go-redis keeps timers of earlier bubbles in a pool
	runtime.GC()
	synctest.Test(t, func(t *testing.T) { r = w.happen() })
	r.again = func(w *world) *run { return play(t, w) }
	return r
}

func (w *world) happen() *run {
	r := &run{world: w, epoch: time.Now(), left: map[string][]string{}}
	var mu sync.Mutex
	n := resp.NewNetwork(resp.Options{TLS: w.TLS, Ran: func(one resp.Run) {
		mu.Lock()
		defer mu.Unlock()
		r.runs = append(r.runs, one)
	}})
	nodes := w.servers(n)
	limiters, closeAll := w.open(n)
	r.clients = limiters
	time.Sleep(time.Second)
	r.epoch = time.Now()
	var all sync.WaitGroup
	for _, one := range limiters {
		if w.CloseAt > 0 {
			all.Go(func() {
				time.Sleep(w.CloseAt)
				_ = one[len(one)-1].(*throttle.Client).Close()
			})
		}
	}
	for _, f := range w.Faults {
		all.Go(func() {
			time.Sleep(f.At)
			if f.Name == "cut" {
				r.cutAway = nodes.of(f).Cut()
				return
			}
			if f.Name == "failover" && w.Kind != "single" {
				time.Sleep(500 * time.Nanosecond) // no call is run at that instant
				old := nodes.of(f)
				r.failovers = append(r.failovers, failover{time.Now(), old.Addr, nodes.copies[old].Addr})
			}
			nodes.strike(f)
		})
	}
	for _, s := range w.Steps {
		o := &outcome{step: s}
		r.outcomes = append(r.outcomes, o)
		all.Go(func() {
			time.Sleep(s.At)
			r.call(o, limiters[s.Client])
		})
	}
	all.Wait()
	time.Sleep(w.Rest)
	r.closed = closeAll()
	for _, s := range nodes.masters() {
		m := s.Memory()
		for _, key := range m.Keys() {
			for _, holder := range m.Get(key).Set {
				r.left[key] = append(r.left[key], holder.Text[1:])
			}
		}
	}
	time.Sleep(5 * time.Second) // dials that go-redis still retries, and the longest ttl of holds
	for _, s := range nodes.masters() {
		r.still = append(r.still, heldNow(s)...)
	}
	n.Close()
	time.Sleep(5 * time.Second)
	return r
}

// nodes are the servers of a world.
type nodes struct {
	masters  func() []*resp.Server
	cluster  *resp.Cluster
	sentinel *resp.Sentinel
	copies   map[*resp.Server]*resp.Server
}

const sentinelAddr = "10.0.1.1:26379"

func (w *world) servers(n *resp.Network) *nodes {
	x := &nodes{copies: map[*resp.Server]*resp.Server{}}
	if w.Kind == "cluster" {
		x.cluster = n.NewCluster("10.0.0.1:6379", "10.0.0.2:6379", "10.0.0.3:6379")
		x.masters = x.cluster.Masters
	} else {
		one := n.Add("10.0.0.1:6379")
		x.masters = func() []*resp.Server { return []*resp.Server{one} }
		if w.Kind == "sentinel" {
			x.sentinel = n.NewSentinel("mymaster", one, sentinelAddr)
			x.masters = func() []*resp.Server { return []*resp.Server{x.sentinel.Master()} }
		}
	}
	for i, s := range x.masters() {
		s.Change(func(f *resp.Faults) { f.Far = w.Far })
		if w.Kind != "single" {
			c := s.AddCopy(fmt.Sprintf("10.0.0.%d:6379", 11+i), w.Lag)
			c.Change(func(f *resp.Faults) { f.Far = w.Far })
			x.copies[s] = c
		}
	}
	return x
}

// of returns the server that a fault strikes.
func (x *nodes) of(f fault) *resp.Server {
	all := x.masters()
	return all[f.Node%len(all)]
}

// strike makes a fault, and returns when it is over.
func (x *nodes) strike(f fault) {
	switch s := x.of(f); f.Name {
	case "cut before", "cut after":
		for range f.For / (20 * time.Millisecond) {
			if f.Name == "cut before" {
				s.CutBefore(1)
			} else {
				s.CutAfter(1)
			}
			time.Sleep(20 * time.Millisecond)
		}
	case "half-open":
		s.HalfOpen()
	case "restart":
		s.Restart()
	case "failover":
		if c := x.copies[s]; c != nil && x.cluster != nil {
			x.cluster.Promote(c)
			x.copies[c] = s
		} else if c != nil {
			x.sentinel.Promote(c)
			x.copies[c] = s
		}
	case "move":
		if x.cluster != nil {
			for key := range 3 {
				x.cluster.Move(resp.Slot(fmt.Sprint("{", key, "}")), s)
			}
		}
	default:
		s.Change(func(now *resp.Faults) { set(now, f.Name) })
		time.Sleep(f.For)
		s.Change(func(now *resp.Faults) { *now = resp.Faults{Far: now.Far} })
	}
}

func set(f *resp.Faults, name string) {
	switch name {
	case "silent":
		f.Silent = true
	case "mute":
		f.Mute = true
	case "refuse":
		f.Refuse, f.Error = true, "LOADING Redis is loading the dataset in memory"
	case "lost":
		f.Lost, f.Silent = true, true
	case "slow":
		f.Slow = 5 * time.Millisecond
	case "no module":
		f.NoModule, f.NoScript = true, true
	case "readonly":
		f.Writes = "READONLY You can't write against a read only replica."
	default:
		f.Error = map[string]string{"loading": "LOADING Redis is loading the dataset in memory", "noauth": "NOAUTH Authentication required.",
			"noperm": "NOPERM this user has no permissions to run the command", "unknown": "PROXY the backend left"}[name]
	}
}

// open makes the clients, each with all limiters, and connects them.
func (w *world) open(n *resp.Network) (limiters [][]any, closeAll func() error) {
	var closers []func() error
	noMaintenance := &maintnotifications.Config{Mode: maintnotifications.ModeDisabled} // it holds a lock during I/O
	for range w.Clients {
		var rdb redis.UniversalClient
		switch w.Kind {
		case "cluster":
			rdb = redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"10.0.0.1:6379", "10.0.0.2:6379"}, Dialer: n.Dial,
				ContextTimeoutEnabled: true, PoolSize: 20, MaintNotificationsConfig: noMaintenance})
		case "sentinel":
			rdb = redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "mymaster", SentinelAddrs: []string{sentinelAddr}, Dialer: n.Dial,
				ContextTimeoutEnabled: true, PoolSize: 20})
		default:
			rdb = redis.NewClient(&redis.Options{Addr: "10.0.0.1:6379", Dialer: n.Dial, ContextTimeoutEnabled: true, PoolSize: 20,
				MaintNotificationsConfig: noMaintenance})
		}
		o := []throttle.Option{throttle.Logger(slog.New(slog.DiscardHandler))}
		if w.Script {
			o = append(o, throttle.Script())
		}
		c, err := throttle.New(rdb, o...)
		if err != nil {
			panic(err)
		}
		var all []any
		for i := range w.Limits {
			all = append(all, w.Limits[i].declare(c, i))
		}
		limiters = append(limiters, append(all, c))
		if err := c.Check(context.Background()); err != nil {
			panic(err)
		}
		closers = append(closers, c.Close, rdb.Close)
	}
	return limiters, func() (err error) {
		for _, closes := range closers {
			if e := closes(); e != nil {
				err = e
			}
		}
		return err
	}
}

// hold is how long units of a budget are held.
const hold = time.Second

// connections is how many a client has at most: 20, and 10 for pipelines.
const connections = 30

// declare makes the limiter on a client.
func (l *limit) declare(c *throttle.Client, i int) any {
	name := fmt.Sprint("l", i)
	o := []throttle.Option{throttle.Timeout(l.Timeout), throttle.DenyCache(l.Denies)}
	if l.Open {
		o = append(o, throttle.FailOpen())
	}
	if l.Closed {
		o = append(o, throttle.FailClosed())
	}
	if l.Local {
		o = append(o, throttle.FailLocal(0.5))
	}
	if l.Budget > 0 {
		o = append(o, throttle.Budget(l.Budget, hold))
	}
	if l.TTL > 0 {
		o = append(o, throttle.Holds(l.TTL, l.Longest))
	}
	switch l.Kind {
	case "window":
		return c.Window(name, l.Units, l.Period, o...)
	case "quota":
		return c.Quota(name, l.Units, l.Period, o...)
	case "slots":
		return c.Slots(name, l.Units, l.Period, o...)
	case "unlimited":
		return c.Rate(name, throttle.Unlimited(), o...)
	case "suspended":
		return c.Rate(name, throttle.Suspended(), o...)
	}
	rate := throttle.Per(l.Units, l.Period)
	if l.Lockout > 0 {
		rate = rate.Lockout(l.Lockout)
	}
	return c.Rate(name, rate, o...)
}
