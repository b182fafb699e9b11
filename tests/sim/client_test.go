package sim

import (
	"errors"
	"slices"

	"github.com/redis/go-redis/v9"
)

// message is a request, and later its reply.
type message struct {
	limiter *limiter
	words   []string
	to      int    // the node
	plain   *plain // who waits for the reply; nil: nobody, or a user
	user    *user
	cmd     redis.Cmder
	back    chan error // of a user: ends its wait
	orphan  bool       // nobody waits any more
	giver   *user      // who gives units back

	executed bool
	decided  int64 // when it was decided, µs of true time
	sent     int64
	serial   int // how many calls of users began before it was sent
	reply    []int64
	err      error
}

var (
	errLost     = errors.New("the reply is lost")
	errReadOnly = errors.New("READONLY You can't write against a read only replica.")
)

// plain is a client that sends words and waits for the reply. If none comes, it may send them again.
type plain struct {
	id       int
	retries  bool
	believes int // the node that it takes for the master
	waits    bool
}

func (p *plain) send(w *world) bool {
	if p.waits {
		return false
	}
	l := w.limiters[w.random.IntN(limiters)]
	if l.budgeted { // of users only
		return false
	}
	p.waits = true
	w.put(&message{limiter: l, words: l.call(w.random), to: p.believes, plain: p})
	return true
}

func (w *world) put(m *message) {
	m.sent = w.now
	w.wire = append(w.wire, m)
	w.note("client %d sends %q to node %d", m.from(), m.words, m.to)
}

func (m *message) from() int {
	switch {
	case m.plain != nil:
		return m.plain.id
	case m.user != nil:
		return 10 + m.user.id
	}
	return -1
}

// arrive lets a message arrive: a request at its node, or a reply at its client. Either may be lost.
func (w *world) arrive() bool {
	if len(w.wire) == 0 {
		return false
	}
	i := w.random.IntN(len(w.wire))
	m := w.wire[i]
	lost := w.random.Int64N(60) < w.faulty
	if lost && !m.executed && w.random.IntN(2) == 0 { // the client gives up, and the request arrives later
		w.answer(m, nil, errLost)
		m.orphan, m.plain, m.user = true, nil, nil
		return true
	}
	if !m.executed && !lost {
		m.executed = true
		m.reply, m.err = w.execute(w.nodes[m.to], m)
		if !m.orphan {
			return true
		}
	}
	w.wire[i] = w.wire[len(w.wire)-1]
	w.wire = w.wire[:len(w.wire)-1]
	if m.orphan {
		return true
	}
	if lost {
		m.err = errLost
		if f := w.planted.lost; f != nil && m.user != nil && m.limiter.budgeted {
			f(w, m)
		}
	}
	w.answer(m, m.reply, m.err)
	return true
}

// answer returns to a client how its call ended.
func (w *world) answer(m *message, reply []int64, err error) {
	w.note("client %d gets the reply to %q: %v, %v", m.from(), m.words, reply, err)
	if m.plain != nil {
		m.plain.waits = false
		if err != nil {
			m.plain.believes = w.learns(m.plain.believes)
			if m.plain.retries {
				m.plain.waits = true
				w.put(&message{limiter: m.limiter, words: m.words, to: m.plain.believes, plain: m.plain})
			}
		}
		return
	}
	if m.user == nil {
		return
	}
	if err != nil {
		m.user.believes = w.learns(m.user.believes)
	} else {
		m.cmd.(interface{ SetVal([]int64) }).SetVal(reply)
		k := m.user.of(m.limiter)
		if k.units += grantedTo(m); grantedTo(m) > 0 {
			k.taken = m.sent
		}
	}
	u := m.user
	u.open = slices.DeleteFunc(u.open, func(o *message) bool { return o == m })
	m.back <- err
	w.settle(m)
}

// learns returns the node that a client turns to after an error: mostly the master.
func (w *world) learns(believes int) int {
	if w.random.IntN(4) == 0 {
		return w.random.IntN(len(w.nodes))
	}
	return w.master
}
