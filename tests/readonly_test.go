package tests

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A read-only twin gives the reply that the command then gives.
func TestReadOnly_sameReply(t *testing.T) {
	s := start(t, options{})
	for _, call := range allReadOnlyCalls() {
		alike(t, call, func() (string, string) {
			s.fill()
			twins := s.ask(twin(call))
			return s.ask(call), twins
		})
	}
}

// A read-only twin writes, replicates and creates nothing, and does not count as a change. It
// works in scripts that may not write.
func TestReadOnly_changesNothing(t *testing.T) {
	s := start(t, options{args: []string{"--repl-diskless-sync", "no", "--appendonly", "yes"}})
	st := s.replicate()
	s.fill()
	st.since()
	before := s.dataset()
	changes := s.info("persistence", "rdb_changes_since_last_save")
	offset := s.info("replication", "master_repl_offset")
	for _, call := range allReadOnlyCalls() {
		alike(t, call, func() (string, string) {
			direct := s.ask(twin(call))
			script := flat(s.EvalRO(ctx, "return redis.call(unpack(ARGV))", nil, fields(twin(call))...).Result())
			return direct, script[:min(len(script), len(direct))] // the text of an error is longer in a script
		})
		alike(t, call, func() (string, string) {
			direct := s.ask(twin(call))
			script := flat(s.Eval(ctx, "#!lua flags=no-writes\nreturn redis.call(unpack(ARGV))", nil, fields(twin(call))...).Result())
			return direct, script[:min(len(script), len(direct))]
		})
		err := s.EvalRO(ctx, "return redis.call(unpack(ARGV))", nil, fields(call)...).Err()
		assert.ErrorContains(t, err, "read-only", call)
	}
	assert.Equal(t, offset, s.info("replication", "master_repl_offset"))
	assert.Equal(t, changes, s.info("persistence", "rdb_changes_since_last_save"))
	assert.Empty(t, st.since())
	same(t, before, s.dataset(), "after the calls")
}

func TestReadOnly_onAReplica(t *testing.T) {
	master, replica := startReplica(t)
	master.fill()
	inStep(t, master, replica)
	before := replica.dataset()
	for _, call := range allReadOnlyCalls() {
		alike(t, call, func() (string, string) { return master.ask(twin(call)), replica.ask(twin(call)) })
		assert.Regexp(t, "^READONLY ", replica.ask(call), call)
		alike(t, call, func() (string, string) {
			direct := master.ask(twin(call))
			script := flat(replica.EvalRO(ctx, "return redis.call(unpack(ARGV))", nil, fields(twin(call))...).Result())
			return direct, script[:min(len(script), len(direct))] // the text of an error is longer in a script
		})
		err := replica.EvalRO(ctx, "return redis.call(unpack(ARGV))", nil, fields(call)...).Err()
		assert.ErrorContains(t, err, "read-only", call)
	}
	same(t, before, replica.dataset(), "the replica")
	// An expired key counts as absent, though the replica has not yet received its DEL.
	require.NoError(t, master.Do(ctx, "PEXPIRE", "h", 1).Err())
	eventually(t, "the key has expired", func() bool {
		return replica.must("GO.THROTTLE_RO h 9 1 360000 0") == "[0 10 10 -1 0]"
	})
	inStep(t, master, replica)
}

// A user with nothing but +@read may use the read-only twins if the server has the API for
// categories. Otherwise the user needs the commands by name.
func TestReadOnly_byAReader(t *testing.T) {
	s := start(t, options{})
	rules := "%R~* -@all +@read"
	if !s.hasACLAPI() {
		rules = "%R~* -@all"
		for name, c := range samples {
			if !c.writes() {
				rules += " +" + name
			}
		}
	}
	reader := s.as("reader", rules)
	s.fill()
	before := s.dataset()
	for _, call := range allReadOnlyCalls() {
		alike(t, call, func() (string, string) { return s.ask(twin(call)), fmt.Sprint(reader.do(fields(twin(call))...)) })
		mayOrNot(t, false, reader.do(fields(call)...), call)
	}
	same(t, before, s.dataset(), "after the calls")
}
