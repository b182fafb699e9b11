package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"gothrottle/tests/corpus"
	exact "gothrottle/tests/world"
)

const (
	limiters = 6
	// Users ask for the first ones. A lane of the client sends four commands at once. With more, the Go scheduler would
	// decide which one waits, and no run could be repeated.
	usersLimiters = 4

	plains   = 4    // clients that send words
	users    = 3    // clients of package throttle
	holders  = 12   // who ask for slots
	onWire   = 24   // messages; then some must arrive
	history  = 1000 // the last steps that a failing world is traced for
	reported = 40   // of these events it prints so many
	never    = math.MaxInt
)

// config is what differs between worlds.
type config struct {
	skew     int64         // µs: no clock of a server is more wrong than that
	units    int64         // of a budget
	keepsFor time.Duration // the same
	closes   bool          // users close, and give units back
	denies   bool          // users keep denials
	faulty   int64         // of 60 messages so many are lost
	fails    bool          // masters fail
	moves    bool          // users come and go all the time
}

// things are what worlds count. lost is units.
var things = strings.Fields("admitted denied refunds lost expired failovers resyncs crashes closes")

// world is a master, two replicas and their clients. One step is one event. All that happens is decided by the seed: a
// goroutine of a user runs only when the scheduler lets one message go, and until it waits again.
type world struct {
	config
	random   *rand.Rand
	planted  *planted // what is wrong in this world
	step     int
	now      int64 // µs since the Unix epoch: the true time
	nodes    [3]*node
	master   int
	log      []group
	limiters []*limiter
	byKey    map[string]*limiter
	plains   [plains]*plain
	users    [users]*user
	wire     []*message
	seen     map[string]int64 // how often each of things happened
	digest   uint64           // of all replies
	broken   string           // what is violated first
	traced   int              // the first step of the trace
	trace    []string

	mu      sync.Mutex
	arrived []*message // what users sent in this step
	results []outcome  // the replies to users in this step
	serial  int
}

// note adds a line about an event to the trace.
func (w *world) note(format string, args ...any) {
	if w.step >= w.traced {
		w.trace = append(w.trace, fmt.Sprintf("step %d, %d µs: ", w.step, w.now)+fmt.Sprintf(format, args...))
	}
}

func (w *world) fail(format string, args ...any) {
	if w.broken == "" {
		w.broken = fmt.Sprintf(format, args...)
	}
}

// trueTime is how far the clock of a bubble is behind the true time: bubbles begin in 2000.
const trueTime = 30 * 365 * 24 * 3600 * 1_000_000

// newWorld makes a world. It must be called in a bubble.
func newWorld(seed, index uint64, p *planted) *world {
	r := rand.New(rand.NewPCG(seed, index))
	w := &world{random: r, seen: map[string]int64{}, planted: p, byKey: map[string]*limiter{}, now: time.Now().UnixMicro() + trueTime}
	w.skew = []int64{0, 3000, 100_000}[r.IntN(3)]
	w.denies = r.IntN(3) == 0
	if r.IntN(4) > 0 {
		w.units, w.keepsFor = 1+r.Int64N(6), time.Duration(5<<r.IntN(9))*time.Millisecond
		w.closes = r.IntN(2) == 0
	}
	w.faulty, w.fails, w.moves = r.Int64N(3), r.IntN(3) > 0, r.IntN(3) == 0
	for i := range limiters {
		l := newLimiter(r, i, &w.config, w.units > 0 && i < limiters/2)
		w.limiters = append(w.limiters, l)
		w.byKey[l.key] = l
	}
	for i := range w.nodes {
		w.nodes[i] = &node{id: i, server: corpus.NewMemory(), alive: true, offset: w.anyOffset()}
	}
	w.nodes[0].models = exact.Keys{}
	for i := range w.plains {
		w.plains[i] = &plain{id: i, retries: i%2 == 0}
	}
	for i := range w.users {
		w.users[i] = w.newUser(i)
	}
	return w
}

func (w *world) anyOffset() int64 { return w.random.Int64N(2*w.skew+1) - w.skew }

func (w *world) hold() int64 { return w.keepsFor.Microseconds() }

// run makes steps until something is violated. Then it lets everything end.
func (w *world) run(steps int) {
	for w.step = 1; w.step <= steps && w.broken == ""; {
		if w.act() {
			w.step++
		}
	}
	if w.broken == "" {
		w.finish()
	}
	w.stop()
}

// act tries to bring about one event, and reports whether one came about.
func (w *world) act() bool {
	if len(w.wire) >= onWire {
		return w.arrive()
	}
	switch n := w.random.IntN(1000); {
	case n < 230:
		return w.plains[w.random.IntN(plains)].send(w)
	case n < 350:
		return w.users[w.random.IntN(users)].allow(w)
	case n < 680:
		return w.arrive()
	case n < 880:
		return w.deliver(w.nodes[w.random.IntN(len(w.nodes))])
	case n < 890 && w.moves:
		return w.replaceUser(w.random.IntN(users))
	case n < 990:
		return w.pass()
	}
	return w.rare()
}

// pass lets time pass, mostly little.
func (w *world) pass() bool {
	d := 1 + w.random.Int64N(3000)
	switch w.random.IntN(100) {
	case 0:
		d = w.random.Int64N(6_000_000)
	case 1, 2, 3:
		d = w.random.Int64N(400_000)
	case 4, 5, 6, 7, 8, 9, 10, 11, 12:
		d = 1000 // a whole ms brings about the instants at which things end
	}
	w.sleep(d)
	w.note("%d µs pass", d)
	return true
}

// sleep lets µs pass.
func (w *world) sleep(d int64) {
	time.Sleep(time.Duration(d) * time.Microsecond)
	w.now += d
}

// rare is what happens now and then.
func (w *world) rare() bool {
	n := w.nodes[w.random.IntN(len(w.nodes))]
	switch w.random.IntN(11) {
	case 10:
		return w.one(5) && w.rush()
	case 0:
		return w.fails && w.one(4) && w.failover()
	case 1, 2, 3:
		if i := slices.IndexFunc(w.nodes[:], func(n *node) bool { return !n.alive || n.deposed }); i >= 0 {
			return w.resync(w.nodes[i])
		}
		return n.id != w.master && w.one(8) && w.resync(n)
	case 4:
		n.offset = w.anyOffset()
		w.note("the clock of node %d is ahead by %d µs", n.id, n.offset)
	case 5, 6:
		w.sweep(w.nodes[w.master])
	case 7:
		return w.replaceUser(w.random.IntN(users))
	case 8:
		w.plains[w.random.IntN(plains)].believes = w.random.IntN(len(w.nodes))
		w.users[w.random.IntN(users)].believes = w.random.IntN(len(w.nodes))
	default:
		for !w.caughtUp(n) && w.broken == "" {
			w.deliver(n)
		}
	}
	return true
}

func (w *world) caughtUp(n *node) bool {
	return !n.alive || n.deposed || n.applied == len(w.log)
}

// finish lets all arrive, and time pass until nothing is in use. Then all nodes are the same, and hold no key.
func (w *world) finish() {
	for len(w.wire) > 0 && w.broken == "" {
		w.arrive()
	}
	w.stop()
	for _, n := range w.nodes {
		if !n.alive || n.deposed {
			w.resync(n)
		}
	}
	w.catchUp()
	w.sleep(time.Hour.Microseconds())
	w.sweep(w.nodes[w.master])
	w.catchUp()
	for _, n := range w.nodes {
		if keys := n.server.Keys(); len(keys) > 0 && w.broken == "" {
			w.fail("node %d still holds %q", n.id, keys)
		}
	}
}

func (w *world) catchUp() {
	for _, n := range w.nodes {
		for w.broken == "" && !w.caughtUp(n) {
			w.deliver(n)
		}
		for _, l := range w.limiters {
			w.checkSame(n, l)
		}
	}
}

// stop ends all goroutines of the world.
func (w *world) stop() {
	for _, u := range w.users {
		w.crash(u)
	}
	synctest.Wait()
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// report returns the last events at the key that the violation names, and those at no key.
func (w *world) report() string {
	key := regexp.MustCompile(`l\d+:{s}`).FindString(w.broken)
	lines := slices.DeleteFunc(w.trace, func(line string) bool { return strings.Contains(line, "{s}") && !strings.Contains(line, key) })
	return w.broken + "\nthe last events:\n" + strings.Join(lines[max(len(lines)-reported, 0):], "\n")
}
