package failover

import (
	"sync"
	"time"
)

// noise is what the machine adds to times: how late a goroutine wakes that sleeps a moment, again and again.
type noise struct {
	mu   sync.Mutex
	late []wake
}

// wake is a late awakening.
type wake struct{ at, late time.Duration }

// measure runs for ever.
func (n *noise) measure() {
	for {
		from := now()
		time.Sleep(5 * ms)
		if late := now() - from - 5*ms; late > 20*ms {
			n.mu.Lock()
			n.late = append(n.late, wake{now(), late})
			n.mu.Unlock()
		}
	}
}

// since returns the latest awakening of this time.
func (n *noise) since(from time.Duration) (most time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, w := range n.late {
		if w.at >= from {
			most = max(most, w.late)
		}
	}
	return most
}

var machine = sync.OnceValue(func() *noise {
	n := new(noise)
	go n.measure()
	return n
})

// slack is what the machine may have added to a time of this episode. Servers and clients may each have been late.
func (e *episode) slack() time.Duration { return time.Second + 3*machine().since(e.began) }
