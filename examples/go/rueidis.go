package examples

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

// Rueidis is a throttle.Processor over a client of rueidis, for programs that use no other. rueidis ends a call when its
// context ends, and sends a command once if the command is not marked read-only: this one marks none. Set ConnWriteTimeout to
// a second: by default, a connection that goes silent under load is replaced after 12 s.
type Rueidis struct{ Client rueidis.Client }

// Process sends a command and sets its reply.
func (r Rueidis) Process(ctx context.Context, cmd redis.Cmder) error {
	args := words(cmd.Args())
	built := r.Client.B().Arbitrary(args[0])
	at := 1 // of the first key, so that a cluster client finds the node
	if args[0] == "EVALSHA" || args[0] == "EVAL" {
		at = 3
	}
	if len(args) > at {
		built = built.Args(args[1:at]...).Keys(args[at]).Args(args[at+1:]...)
	}
	err := setReply(cmd, r.Client.Do(ctx, built.Build()))
	cmd.SetErr(err)
	return err
}

func words(args []any) []string {
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = fmt.Sprint(arg)
	}
	return words
}

func setReply(cmd redis.Cmder, reply rueidis.RedisResult) error {
	value, err := reply.ToAny()
	cmd.(interface{ SetVal(any) }).SetVal(value)
	if refused, ok := rueidis.IsRedisErr(err); ok {
		return replyError(refused.Error())
	}
	return err
}

// replyError is an error reply as go-redis has it: with its code, of which rueidis drops ERR.
type replyError string

func (e replyError) Error() string {
	code, _, _ := strings.Cut(string(e), " ")
	if strings.ToUpper(code) != code {
		return "ERR " + string(e)
	}
	return string(e)
}

// RedisError makes it a redis.Error.
func (replyError) RedisError() {}
