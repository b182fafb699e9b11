package memory

import (
	"fmt"
	"slices"
	"strconv"

	"gothrottle/commands"
	"gothrottle/funnel"
)

// Process runs a command of go-redis, a Cmder there, or such a call of the script, and sets its reply. It leaves the command's
// error to the caller.
func (s *Server) Process(now funnel.Micros, cmd interface{ Args() []any }) error {
	words := Words(cmd)
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

// Words returns the words of a command of go-redis.
func Words(cmd interface{ Args() []any }) []string {
	words := make([]string, len(cmd.Args()))
	for i, arg := range cmd.Args() {
		words[i] = fmt.Sprint(arg)
	}
	return words
}

// ScriptWords returns the words of a limiter's command that EVAL or EVALSHA runs by the script, whose keys come first.
func ScriptWords(words []string) ([]string, error) {
	keys, err := strconv.Atoi(words[2])
	if err != nil || keys < 1 || len(words)-4 < keys {
		return nil, fmt.Errorf("%v are not words for the script", words[2:])
	}
	return slices.Concat(words[3+keys:4+keys], words[3:4], words[4+keys:]), nil
}

// wrongArity returns the error of a call of n words, if that is a wrong number.
func wrongArity(row *commands.Command, n int) error {
	switch {
	case n < -row.Arity || row.Arity > 0 && n != row.Arity:
		return wrongNumber(row.Name)
	case n < row.MinArity || row.MaxArity > 0 && n > row.MaxArity:
		return Error(row.WrongArity())
	}
	return nil
}

// KeysOf returns the keys of a call of one of gothrottle's commands, none of others or if the number of words is wrong.
func (s *Server) KeysOf(words []string) (keys []string) {
	row := commands.Find(words[0])
	if row == nil || row.NoKey || wrongArity(row, len(words)) != nil {
		return nil
	}
	if row.Plan == nil || row.OneKey {
		return words[1:2]
	}
	defer unlock(lock(s.shards[:]))
	c := commands.Call{Args: words[1:], Keys: make([]commands.Key, 0, commands.MaxClauses), Clauses: make([]commands.Clause, 0, commands.MaxClauses)}
	_ = s.shards[0].engine.Plan(row, &c)
	for _, k := range c.Keys {
		keys = append(keys, c.Args[k.Word])
	}
	return keys
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
