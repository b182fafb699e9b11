package commands_test

import (
	"testing"

	"gothrottle/funnel"
	"gothrottle/tests/corpus"
	"gothrottle/tests/world"
)

// Random calls: the commands and their read-only twins decide and reply as the exact models do. A server that applies
// the effects of a call holds the same, with the same expiries.
func TestAll_random(t *testing.T) {
	world.Compare(t, &followed{newTwins(t), corpus.NewMemory(), corpus.Epoch}, 6000, 0)
}

// followed is package memory and a replica of it.
type followed struct {
	*twins
	replica *corpus.Memory
	now     funnel.Micros
}

func (h *followed) Empty() {
	h.Begin(int64(h.now))
	h.replica.Begin(int64(h.now))
}

func (h *followed) At(step funnel.Micros, batch []world.Made) (now funnel.Micros, replies []string) {
	h.now += step
	h.Clock(int64(h.now))
	h.replica.Clock(int64(h.now))
	for _, c := range batch {
		if c.Policies != "" && h.SetPolicies(c.Policies) != nil {
			h.t.Fatal(c.Policies)
		}
		reply, effects := h.Call(c.Words)
		replies = append(replies, corpus.ReplyText(reply))
		for _, effect := range effects {
			_, _ = h.replica.Do(0, effect...)
		}
		if a, b := h.Dump(), h.replica.Dump(); a != b {
			h.t.Errorf("%q: %q: it holds\n%s\nand its replica\n%s", c.Words, effects, a, b)
		}
	}
	return h.now, replies
}
