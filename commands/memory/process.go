package memory

import (
	"fmt"
	"slices"
	"strconv"

	"gothrottle/funnel"
)

// Process runs a command of go-redis, a Cmder there, or such a call of the script, and sets its reply. It leaves the command's
// error to the caller.
func (s *Server) Process(now funnel.Micros, cmd interface{ Args() []any }) error {
	words := make([]string, len(cmd.Args()))
	for i, arg := range cmd.Args() {
		words[i] = fmt.Sprint(arg)
	}
	var err error
	if words[0] == "EVALSHA" || words[0] == "EVAL" {
		if words, err = ScriptWords(words); err != nil {
			return err
		}
	}
	reply, err := s.Do(now, words...)
	if err != nil {
		return err
	}
	return SetReply(cmd, reply)
}

// ScriptWords returns the words of a limiter's command that EVAL or EVALSHA runs by the script, whose keys come first.
func ScriptWords(words []string) ([]string, error) {
	keys, err := strconv.Atoi(words[2])
	if err != nil || keys < 1 || len(words)-4 < keys {
		return nil, fmt.Errorf("%v are not words for the script", words[2:])
	}
	return slices.Concat(words[3+keys:4+keys], words[3:4], words[4+keys:]), nil
}

// SetReply sets the reply of a command of go-redis: of a *Cmd, *IntCmd or *IntSliceCmd.
func SetReply(cmd, reply any) error {
	switch cmd := cmd.(type) {
	case interface{ SetVal(any) }:
		cmd.SetVal(reply)
	case interface{ SetVal(int64) }:
		n, ok := reply.(int64)
		if !ok {
			return fmt.Errorf("the reply %v isn't an integer", reply)
		}
		cmd.SetVal(n)
	case interface{ SetVal([]int64) }:
		items, _ := reply.([]any)
		ints := make([]int64, len(items))
		for i, item := range items {
			n, ok := item.(int64)
			if !ok {
				return fmt.Errorf("the reply %v isn't an array of integers", reply)
			}
			ints[i] = n
		}
		cmd.SetVal(ints)
	default:
		return fmt.Errorf("a command of the type %T has no reply of ours", cmd)
	}
	return nil
}
