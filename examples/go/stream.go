package examples

import (
	"context"
	"errors"
	"iter"

	"gothrottle/throttle"
)

// ErrSpent says that a user's tokens are spent.
var ErrSpent = errors.New("your tokens are spent")

// Stream writes a model's answer, token by token, while the user's budget lasts. It holds a number of tokens ahead and
// charges those that were written. If the process is killed, what it holds is free after the ttl of throttle.Holds.
func Stream(ctx context.Context, budget throttle.Window, user string, ahead int64, answer iter.Seq[string], write func(string) error) (err error) {
	var hold *throttle.Hold
	used := int64(0)
	settle := func() error {
		if hold == nil {
			return nil
		}
		return hold.Settle(context.WithoutCancel(ctx), used) // the reader may have gone
	}
	defer func() { err = errors.Join(err, settle()) }()
	for token := range answer {
		if hold == nil || used == ahead {
			if err := settle(); err != nil {
				return err
			}
			if hold, err = budget.Hold(ctx, user, ahead); err != nil {
				return spent(err)
			}
			used = 0
		}
		used++ // the model has made it, even if nobody reads it
		if err := write(token); err != nil {
			return err
		}
	}
	return nil
}

// spent returns ErrSpent for a denial.
func spent(err error) error {
	var denied *throttle.DeniedError
	if errors.As(err, &denied) && denied.Cause == nil {
		return ErrSpent
	}
	return err
}
