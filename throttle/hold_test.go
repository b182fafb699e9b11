package throttle_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"gothrottle/throttle"
	"gothrottle/throttle/throttletest"
)

// left returns how many units of a key can be held: all that aren't spent, if nothing is held.
func left(t *testing.T, tokens throttle.Window, key string) int64 {
	t.Helper()
	n := must(tokens.Peek(background, key)).Remaining
	h, err := tokens.Hold(background, key, n)
	require.NoError(t, err, "something is held")
	require.NoError(t, h.Close())
	return n
}

// A hold renews itself until its deadline. One that has lapsed, was lost, or never held anything is charged once more, if there
// is room.
func TestHold_lost(t *testing.T) {
	bubble(t, func(t *testing.T, _ *throttle.Client, s *throttletest.Server) {
		c := newReal(t, s, throttle.FailOpen())
		tokens := c.Quota("tokens", 100, 24*time.Hour)
		h := must(tokens.Hold(background, "bob", 60))
		time.Sleep(time.Hour)
		require.Error(t, only(tokens.Hold(background, "bob", 60)), "it is renewed")
		time.Sleep(30 * time.Second)
		require.Equal(t, int64(100), left(t, tokens, "bob"))
		require.NoError(t, h.Settle(background, 10))
		require.Equal(t, int64(90), left(t, tokens, "bob"))

		h = must(tokens.Hold(background, "bob", 60))
		s.Delete("{tokens:bob}:held")
		other := must(tokens.Hold(background, "bob", 60))
		require.NoError(t, h.Settle(background, 10))
		require.NoError(t, h.Settle(background, 10), "the outcome of the first")
		require.NoError(t, other.Close())
		require.NoError(t, h.Close())
		require.Equal(t, int64(80), left(t, tokens, "bob"))

		h = must(tokens.Hold(background, "bob", 60))
		s.Fail(errors.New("away"))
		short, cancel := context.WithTimeout(background, time.Second)
		defer cancel()
		require.ErrorIs(t, h.Settle(short, 10), context.DeadlineExceeded)
		s.Fail(nil)
		time.Sleep(time.Second)
		require.NoError(t, h.Close())
		require.Error(t, only(tokens.Hold(background, "bob", 60)), "it may be settled, so Close keeps it")
		require.NoError(t, h.Settle(background, 10))
		require.Equal(t, int64(70), left(t, tokens, "bob"))

		s.Fail(errors.New("away"))
		h = must(tokens.Hold(background, "bob", 60))
		require.Equal(t, "failed-open", h.Source)
		require.Empty(t, h.Ticket())
		require.ErrorIs(t, h.Settle(background, 90), throttle.ErrUnavailable)
		s.Fail(nil)
		time.Sleep(time.Second)
		require.NoError(t, h.Settle(background, 90), "past the limit")
		h, err := c.Resume("", tokens.Part("bob", 0))
		require.NoError(t, err)
		var denied *throttle.DeniedError
		require.ErrorAs(t, h.Settle(background, 1), &denied, "there is no room for a new hold")
	})
}

// A hold that was lost is charged again after an outage in which no settlement was sent.
func TestHold_unsent(t *testing.T) {
	bubble(t, func(t *testing.T, _ *throttle.Client, s *throttletest.Server) {
		c := newReal(t, s, throttle.Holds(4*time.Second, time.Hour))
		tokens := c.Quota("tokens", 100, time.Hour)
		h := must(tokens.Hold(background, "bob", 60))
		s.Delete("{tokens:bob}:held")
		s.Fail(&net.OpError{Op: "dial", Err: errors.New("refused")})
		done := make(chan error)
		go func() { done <- h.Settle(background, 30) }()
		time.Sleep(2 * time.Second)
		s.Fail(nil)
		require.NoError(t, <-done)
		require.Equal(t, int64(70), left(t, tokens, "bob"))
	})
}

// Another process settles or closes a hold by its ticket, once.
func TestHold_ticket(t *testing.T) {
	bubble(t, func(t *testing.T, _ *throttle.Client, s *throttletest.Server) {
		c := newReal(t, s, throttle.Holds(10*time.Minute, 0))
		user, team := c.Quota("user", 100, time.Hour), c.Rate("team", throttle.PerHour(1000))
		parts := []throttle.Part{user.Part("{acme}bob", 0), team.Part("{acme}", 0)}
		h := must(user.Hold(background, "{acme}bob", 50, team.Part("{acme}", 200)))
		require.ErrorContains(t, only(user.Hold(background, "{acme}bob", 51)), "denied")
		require.ErrorContains(t, only(team.Hold(background, "{acme}", 801)), "denied")
		time.Sleep(8 * time.Minute) // nobody renews it
		for range 2 {
			require.NoError(t, must(c.Resume(h.Ticket(), parts...)).Settle(background, 20), "settled, or already settled")
		}
		require.Equal(t, int64(80), left(t, user, "{acme}bob"))
		require.Equal(t, int64(980), must(team.Peek(background, "{acme}")).Remaining)
		time.Sleep(2 * time.Minute)
		require.ErrorIs(t, must(c.Resume(h.Ticket(), parts...)).Settle(background, 20), throttle.ErrLost, "nobody knows")

		h = must(user.Hold(background, "{acme}bob", 50, team.Part("{acme}", 200)))
		require.NoError(t, must(c.Resume(h.Ticket(), parts...)).Close())
		require.Equal(t, int64(80), left(t, user, "{acme}bob"))

		var rows []struct {
			Ticket, ID string
			Lapses     int64
		}
		require.NoError(t, json.Unmarshal(must(os.ReadFile("../adapters/tickets.json")), &rows))
		for _, row := range rows {
			if row.ID == "" {
				require.ErrorIs(t, only(c.Resume(row.Ticket, parts...)), throttle.ErrParams, row.Ticket)
				continue
			}
			require.Equal(t, row.Ticket, must(c.Resume(row.Ticket, parts...)).Ticket())
			require.Equal(t, row.Ticket, row.ID+"."+strconv.FormatInt(row.Lapses, 36))
		}
	})
}

// E counts from when a call is sent, however late its reply. A renewal that comes too late takes nothing, and a hold whose reply is
// lost is given back at each level.
func TestHold_late(t *testing.T) {
	bubble(t, func(t *testing.T, _ *throttle.Client, s *throttletest.Server) {
		var late time.Duration
		var lost atomic.Bool
		c := newReal(t, processor(func(ctx context.Context, cmd redis.Cmder) error {
			err := s.Process(ctx, cmd)
			if time.Sleep(late); lost.Load() {
				return errors.New("the reply is lost")
			}
			return err
		}), throttle.Timeout(20*time.Second), throttle.Holds(30*time.Second, time.Hour))
		user, team := c.Quota("user", 100, time.Hour), c.Rate("team", throttle.PerHour(1000))

		late = 10 * time.Second
		_, end, _ := strings.Cut(must(user.Hold(background, "{acme}bob", 50)).Ticket(), ".")
		require.Equal(t, time.Now().Add(17*time.Second).UnixMilli(), must(strconv.ParseInt(end, 36, 64)), "sent + ttl - ttl/10")

		late = 0
		s.Advance(time.Minute) // it has lapsed, and the next renewal comes
		time.Sleep(15 * time.Second)
		require.Equal(t, int64(100), left(t, user, "{acme}bob"))

		lost.Store(true)
		require.ErrorIs(t, only(user.Hold(background, "{acme}bob", 50, team.Part("{acme}", 200))), throttle.ErrUnavailable)
		here := must(c.Quota("user", 100, time.Hour, throttle.FailLocal(0.5)).Hold(background, "{acme}bob", 50))
		require.Equal(t, "failed-local", here.Source)
		lost.Store(false)
		time.Sleep(time.Second)
		require.Zero(t, s.Keys(), "nothing is held at any level")
	})
}

// A hold's key is in the slot of its limiter's key, or the hold is refused.
func TestHold_keys(t *testing.T) {
	c, s := throttletest.New(t)
	tokens := c.Rate("tokens", throttle.PerHour(100))
	for key, held := range map[string]string{"bob": "{tokens:bob}:held", "{acme}bob": "tokens:{acme}bob:held", "a{b}}": "tokens:a{b}}:held"} {
		h := must(tokens.Hold(background, key, 1))
		require.True(t, s.Delete(held), key)
		require.NoError(t, h.Close())
	}
	for _, key := range []string{"{", "}", "a{}b", "}{"} {
		require.ErrorIs(t, only(tokens.Hold(background, key, 1)), throttle.ErrParams, key)
	}
	for _, part := range []throttle.Part{tokens.Part("x", 0), c.Slots("jobs", 1, time.Second).Part("x", "y"), tokens.Part("x", 1).Share(1)} {
		require.ErrorIs(t, only(tokens.Hold(background, "bob", 1, part)), throttle.ErrParams)
	}
	require.ErrorIs(t, only(throttle.New(s, throttle.Holds(0, time.Second))), throttle.ErrParams)
}

// Without a server a hold follows the limiter's fallback. Limits that the server isn't asked about hold nothing.
func TestHold_fallback(t *testing.T) {
	bubble(t, func(t *testing.T, _ *throttle.Client, s *throttletest.Server) {
		var seen []throttle.Event
		c := newReal(t, s, throttle.Observe(func(e throttle.Event) { seen = append(seen, e) }))
		tokens := func(o ...throttle.Option) throttle.Window { return c.Quota("tokens", 100, time.Hour, o...) }
		s.Fail(errors.New("away"))
		require.ErrorIs(t, only(tokens().Hold(background, "bob", 1)), throttle.ErrUnavailable)
		var denied *throttle.DeniedError
		require.ErrorAs(t, only(tokens(throttle.FailClosed()).Hold(background, "bob", 1)), &denied)
		require.Equal(t, "failed-closed", denied.Source)
		local := tokens(throttle.FailLocal(0.5))
		require.ErrorAs(t, only(local.Hold(background, "bob", 51)), &denied)
		h := must(local.Hold(background, "bob", 50))
		require.Equal(t, "failed-local", h.Source)
		require.Empty(t, h.Ticket(), "no other process finds it")
		time.Sleep(time.Minute)
		require.ErrorAs(t, only(local.Hold(background, "bob", 1)), &denied)
		require.NoError(t, h.Settle(background, 49))
		require.NoError(t, must(local.Hold(background, "bob", 1)).Close())
		seen = seen[len(seen)-2:]
		require.Equal(t, []any{"Settle", "tokens", int64(49), "failed-local"}, []any{seen[0].Verb, seen[0].Name, seen[0].Granted, seen[0].Source})

		require.NoError(t, must(tokens().With(throttle.Unlimited()).Hold(background, "bob", 1e9)).Settle(background, 5))
		require.ErrorAs(t, only(tokens().With(throttle.Suspended()).Hold(background, "bob", 1)), &denied)
		require.Equal(t, throttle.Never, denied.RetryAfter)
	})
}
