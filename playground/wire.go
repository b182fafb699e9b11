package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"gothrottle/throttle"
)

// wire passes the commands of package throttle on and keeps the last one: its words and its reply, as they were on the
// wire. One session uses a wire, for one call at a time.
type wire struct {
	to    throttle.Processor
	words []string
	reply Reply
}

// Reply is the reply of one call: the decision's integers, and of several limiters each limiter's own.
type Reply struct {
	Ints []int64   `json:"ints"`
	Each [][]int64 `json:"each,omitempty"`
}

// forget drops the last words and reply. A client whose server is away may send nothing, and then there is nothing to read.
func (w *wire) forget() { w.words, w.reply = nil, Reply{} }

// Process sends a command and keeps it.
func (w *wire) Process(ctx context.Context, cmd redis.Cmder) error {
	w.words, w.reply = words(cmd.Args()), Reply{}
	err := w.to.Process(ctx, cmd)
	switch cmd := cmd.(type) {
	case interface{ Val() []int64 }:
		w.reply.Ints = cmd.Val()
	case interface{ Val() any }:
		w.reply = readReply(cmd.Val())
	}
	return err
}

func words(args []any) []string {
	words := make([]string, len(args))
	for i, arg := range args {
		switch arg := arg.(type) {
		case *string:
			words[i] = *arg
		case *int64:
			words[i] = strconv.FormatInt(*arg, 10)
		default:
			words[i] = fmt.Sprint(arg)
		}
	}
	return words
}

// readReply splits integers from the arrays that follow them.
func readReply(v any) (r Reply) {
	items, _ := v.([]any)
	for _, item := range items {
		switch item := item.(type) {
		case int64:
			r.Ints = append(r.Ints, item)
		case []any:
			r.Each = append(r.Each, readReply(item).Ints)
		}
	}
	return r
}

// limiters returns the five integers of each limiter that the call asked.
func (r *Reply) limiters() [][]int64 {
	if len(r.Each) > 0 {
		return r.Each
	}
	return [][]int64{r.Ints}
}
