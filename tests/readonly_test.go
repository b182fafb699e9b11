package tests

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// readOnlyCalls are calls of the commands that have a read-only twin, on the keys that
// fill makes.
var readOnlyCalls = []string{
	"GO.THROTTLE h 9 1 360000 1", "GO.THROTTLE h 9 1 360000 0", "GO.THROTTLE h 9 1 360000 -2", "GO.THROTTLE h 9 1 360000 9",
	"GO.THROTTLE h 9 1 360000 11", "GO.THROTTLE h 9 1 360000 11 UPTO", "GO.THROTTLE h 9 1 180000 1", "GO.THROTTLE h 1 7 360000 1",
	"GO.THROTTLE none 9 1 360000", "GO.THROTTLE h 9 1 360000000 1 MS", "GO.THROTTLE h x 1 360000", "GO.THROTTLE w 9 1 360000",
	"GO.THROTTLE cell 9 1 360000 1",
	"GO.WINDOW w 9 360000 1", "GO.WINDOW w 9 360000 0", "GO.WINDOW w 9 360000 -2", "GO.WINDOW w 9 360000 9",
	"GO.WINDOW w 9 360000 11", "GO.WINDOW w 9 360000 11 UPTO EXACT", "GO.WINDOW w 2 360000 0", "GO.WINDOW w 1000 360000 1",
	"GO.WINDOW none 9 360000 -1", "GO.WINDOW w 9 360000000 1 MS UPTO", "GO.WINDOW w 9 x", "GO.WINDOW q 9 60",
	"GO.QUOTA q 9 360000 1", "GO.QUOTA q 9 360000 0", "GO.QUOTA q 9 360000 -2", "GO.QUOTA q 9 360000 9",
	"GO.QUOTA q 9 360000 11", "GO.QUOTA q 9 360000 11 UPTO", "GO.QUOTA q 2 360000 0", "GO.QUOTA q 9 60 1 ALIGN 0",
	"GO.QUOTA none 9 360000 1", "GO.QUOTA q 9 360000000 1 MS", "GO.QUOTA q 9 360000 ALIGN", "GO.QUOTA h 9 60",
}

func (s *server) fill() {
	s.t.Helper()
	require.NoError(s.t, s.FlushAll(ctx).Err())
	for _, call := range []string{
		"GO.THROTTLE h 9 1 360000 3", "GO.WINDOW w 9 360000 2", "GO.WINDOW w 9 360000 2", "GO.QUOTA q 9 360000 3",
		"SET cell 4102444800000000000 EX 1000000",
	} {
		s.must(call)
	}
}

// twin returns the same call of the read-only command.
func twin(call string) string {
	name, rest, _ := strings.Cut(call, " ")
	return name + "_RO " + rest
}

// alike checks that two ways to ask give the same. They ask again if not, since a
// millisecond may have passed in between.
func alike(t *testing.T, what string, ask func() (a, b string)) {
	t.Helper()
	a, b := ask()
	for range 10 {
		if a == b {
			return
		}
		a, b = ask()
	}
	assert.Equal(t, a, b, what)
}

// A read-only twin replies what the command would, which is then called.
func TestReadOnly_sameReply(t *testing.T) {
	s := start(t, options{})
	for _, call := range readOnlyCalls {
		alike(t, call, func() (string, string) {
			s.fill()
			twins := s.ask(twin(call))
			return s.ask(call), twins
		})
	}
}

// Nothing is written, replicated, created or counted as a change, not even to the
// statistics of a key, and it works in scripts that may not write.
func TestReadOnly_changesNothing(t *testing.T) {
	s := start(t, options{args: []string{"--repl-diskless-sync", "no", "--appendonly", "yes"}})
	st := s.replicate()
	s.fill()
	st.since()
	before := s.dataset()
	changes := s.info("persistence", "rdb_changes_since_last_save")
	offset := s.info("replication", "master_repl_offset")
	for _, call := range readOnlyCalls {
		alike(t, call, func() (string, string) {
			direct := s.ask(twin(call))
			script := flat(s.EvalRO(ctx, "return redis.call(unpack(ARGV))", nil, fields(twin(call))...).Result())
			return direct, script[:min(len(script), len(direct))] // an error goes on about the script
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
	same(t, before, s.dataset(), "after all")
}

func TestReadOnly_onAReplica(t *testing.T) {
	net := newNetwork(t)
	master := start(t, options{net: net})
	replica := start(t, options{net: net})
	replica.follow(master)
	master.fill()
	inStep(t, master, replica)
	before := replica.dataset()
	for _, call := range readOnlyCalls {
		alike(t, call, func() (string, string) { return master.ask(twin(call)), replica.ask(twin(call)) })
		assert.Regexp(t, "^READONLY ", replica.ask(call), call)
	}
	same(t, before, replica.dataset(), "the replica")
	// What has expired is not there, though the replica has not been told to delete it.
	require.NoError(t, master.Do(ctx, "PEXPIRE", "h", 1).Err())
	eventually(t, "it is gone", func() bool {
		return replica.must("GO.THROTTLE_RO h 9 1 360000 0") == "[0 10 10 -1 0]"
	})
	inStep(t, master, replica)
}

// A user with nothing but +@read may ask, where the server has the API; else by name.
func TestReadOnly_byAReader(t *testing.T) {
	s := start(t, options{})
	rules := "%R~* -@all +@read"
	if !s.hasACLAPI() {
		rules = "%R~* -@all +go.throttle_ro +go.window_ro +go.quota_ro"
	}
	reader := s.as("reader", rules)
	s.fill()
	before := s.dataset()
	for _, call := range readOnlyCalls {
		alike(t, call, func() (string, string) { return s.ask(twin(call)), fmt.Sprint(reader.do(fields(twin(call))...)) })
		mayOrNot(t, false, reader.do(fields(call)...), call)
	}
	same(t, before, s.dataset(), "after all")
}
