package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"gothrottle/throttle"
)

// user is a client of package throttle.
type user struct {
	id       int
	world    *world
	client   *throttle.Client
	believes int
	open     []*message // what waits for a reply
	started  time.Time
	dead     bool
	closing  bool
	kept     map[*limiter]*kept
}

// kept is what a user must account for.
type kept struct {
	units int64 // that were granted, less those that callers got or that were given back
	taken int64 // when the command was sent that took units last, µs
	asks  int64 // callers that no command was sent for; only if users neither spend nor deny by themselves
}

func (u *user) of(l *limiter) *kept {
	if u.kept[l] == nil {
		u.kept[l] = new(kept)
	}
	return u.kept[l]
}

func (w *world) newUser(id int) *user {
	u := &user{id: id, world: w, believes: w.master, started: time.Now(), kept: map[*limiter]*kept{}}
	now := time.Now
	if w.planted.frozen {
		now = func() time.Time { return u.started }
	}
	c, err := throttle.New(u, throttle.Logger(slog.New(slog.DiscardHandler)), throttle.Clock(now), throttle.Timeout(1000*time.Hour), throttle.DenyCache(w.denies),
		throttle.Budget(w.units, w.keepsFor))
	if err != nil {
		panic(err)
	}
	u.client = c
	return u
}

// Process sends a command of the user and waits for its reply. It runs in a goroutine of the user.
func (u *user) Process(_ context.Context, cmd redis.Cmder) error {
	w := u.world
	words := make([]string, len(cmd.Args()))
	for i, arg := range cmd.Args() {
		words[i] = fmt.Sprint(arg)
	}
	m := &message{limiter: w.byKey[words[1]], words: words, user: u, cmd: cmd, back: make(chan error)}
	w.mu.Lock()
	if u.dead {
		w.mu.Unlock()
		cmd.SetErr(errLost)
		return errLost
	}
	if u.closing && isGiveBack(words) {
		// Nobody waits for these, so that the order in which they are sent does not matter.
		m.user, m.giver, m.orphan = nil, u, true
		w.arrived = append(w.arrived, m)
		w.mu.Unlock()
		cmd.(interface{ SetVal([]int64) }).SetVal([]int64{0, 1, 1, -1, 0, -1})
		return nil
	}
	w.arrived = append(w.arrived, m)
	w.mu.Unlock()
	err := <-m.back
	cmd.SetErr(err)
	return err
}

// grantedTo returns how many units a user got by the reply to a message.
func grantedTo(m *message) int64 {
	c := callOf(m.words)
	switch {
	case c.UpTo || c.Reserve:
		return m.reply[5]
	case m.reply[0] == 0:
		return c.Quantity
	}
	return 0
}

// isGiveBack reports whether a command of a user gives units back.
func isGiveBack(words []string) bool {
	return slices.ContainsFunc(words[3:], func(s string) bool { return s[0] == '-' })
}

// outcome is the reply to a caller of Allow.
type outcome struct {
	user    *user
	limiter *limiter
	serial  int // how many calls began before
	result  throttle.Result
	err     error
}

// allow lets a caller ask for one unit, or a few callers at once.
func (u *user) allow(w *world) bool {
	l := w.limiters[w.random.IntN(usersLimiters)]
	if w.units > 0 {
		l = w.limiters[w.random.IntN(limiters/2)]
	}
	return u.allowOf(w, l)
}

func (u *user) allowOf(w *world, l *limiter) bool {
	if l.kind == leaseKind || l.mixed {
		return false
	}
	w.note("callers of client %d ask for %s", 10+u.id, l.key)
	for range 1 + w.random.IntN(4) {
		u.of(l).asks++
		serial := w.serial
		w.serial++
		go func() {
			r, err := l.value(u.client).Allow(context.Background(), rest)
			w.mu.Lock()
			defer w.mu.Unlock()
			if !u.dead {
				w.results = append(w.results, outcome{u, l, serial, r, err})
			}
		}()
		synctest.Wait() // else who comes first would not be up to the seed
	}
	w.settle(nil)
	return true
}

// rush lets all users ask for units of one limiter, then some time pass, and then all ask again and again at once. So
// budgets are full and units have drained when the rush begins.
func (w *world) rush() bool {
	l := w.limiters[w.random.IntN(limiters/2)]
	for range 3 {
		for _, u := range w.users {
			w.step++
			u.allowOf(w, l)
		}
		w.arriveSome(4 * users)
	}
	w.sleep(w.random.Int64N(w.hold() + 1))
	for range 30 {
		w.step++
		w.users[w.random.IntN(users)].allowOf(w, l)
		w.arriveSome(2)
	}
	return true
}

func (w *world) arriveSome(n int) {
	for ; n > 0 && w.arrive(); n-- {
		w.step++
	}
}

// settle takes over what users have sent and received, after the reply to a message if it is not nil.
func (w *world) settle(after *message) {
	synctest.Wait()
	w.mu.Lock()
	arrived, results := w.arrived, w.results
	w.arrived, w.results = nil, nil
	w.mu.Unlock()
	slices.SortFunc(arrived, func(a, b *message) int { return cmp.Or(a.from()-b.from(), slices.Compare(a.words, b.words)) })
	for _, m := range arrived {
		m.serial, m.sent = w.serial, w.now
		if m.user != nil {
			m.to = m.user.believes
			m.user.open = append(m.user.open, m)
			w.checkAsked(m)
		} else {
			m.to = w.master
		}
		w.put(m)
		if f := w.planted.giving; f != nil && isGiveBack(m.words) {
			f(w, m)
		}
	}
	for _, o := range results {
		w.admitted(after, o)
	}
	w.checkSpent()
}

// checkAsked makes sure that a user that keeps nothing asks for each caller once.
func (w *world) checkAsked(m *message) {
	k := m.user.of(m.limiter)
	if k.asks -= callOf(m.words).Quantity; k.asks < 0 && w.units == 0 {
		w.fail("%s: user %d asks for %d units more than it has callers", m.limiter.key, m.user.id, -k.asks)
	}
}

// admitted notes a unit that a caller was admitted. It counts when it was decided, or taken from a budget.
func (w *world) admitted(after *message, o outcome) {
	if o.err != nil && !errors.Is(o.err, throttle.ErrUnavailable) && !errors.Is(o.err, throttle.ErrClosed) {
		w.fail("user %d: %s: %v", o.user.id, o.limiter.key, o.err)
	}
	if !o.result.Allowed {
		return
	}
	k := o.user.of(o.limiter)
	if k.units--; k.units < 0 {
		w.fail("%s: callers of user %d got more units than the user (%s)", o.limiter.key, o.user.id, o.result.Source)
	}
	if !o.limiter.budgeted {
		return
	}
	at := w.now
	if after != nil && after.limiter == o.limiter && after.user == o.user && o.serial < after.serial {
		if at = after.decided; o.result.Source == throttle.FromBudget {
			at = after.sent
		}
	}
	o.limiter.spent.later(at, 1)
}

// checkSpent holds what callers were admitted against the bounds that the documentation of throttle.Budget states.
func (w *world) checkSpent() {
	for _, l := range w.limiters {
		if len(l.spent.waiting) == 0 {
			continue
		}
		upTo := w.now
		for _, u := range w.users {
			for _, m := range u.open {
				if m.limiter == l {
					upTo = min(upTo, m.sent)
				}
			}
		}
		if over := l.spent.settle(upTo, w.excess(l)); over > 0 {
			w.fail("%s: callers were admitted %d units more than the bound: %d beyond the limit, credit %d", l.key, over, w.excess(l), l.spent.credit)
		}
	}
}

// excess is the bound of what budgets admit beyond the limit.
func (w *world) excess(l *limiter) int64 {
	all := users * w.units
	if l.kind != rateKind {
		return all
	}
	hold := (w.hold()*l.count + l.period*1000 - 1) / (l.period * 1000)
	if w.closes {
		hold += (users - 1) * w.units
	}
	return min(all, hold)
}

// crash ends a user as a killed process ends. What it sent may still arrive.
func (w *world) crash(u *user) {
	w.mu.Lock()
	u.dead = true
	w.mu.Unlock()
	for _, m := range u.open {
		m.orphan, m.user = true, nil
		m.back <- errLost
	}
	u.open = nil
	synctest.Wait()
	w.mu.Lock()
	w.arrived = nil
	w.mu.Unlock()
}

// replaceUser lets a user crash or close, and puts a new one in its place.
func (w *world) replaceUser(i int) bool {
	u := w.users[i]
	if w.closes && w.random.IntN(4) > 0 {
		w.note("client %d closes", 10+i)
		w.seen["closes"]++
		w.mu.Lock()
		u.closing = true
		w.mu.Unlock()
		go u.client.Close()
		w.settle(nil)
	} else {
		w.note("client %d crashes", 10+i)
		w.seen["crashes"]++
	}
	w.crash(u)
	w.users[i] = w.newUser(i)
	return true
}
