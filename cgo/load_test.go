package cgo_test

// No transcript loads or unloads the module, or forks the server.

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"gothrottle/cgo/fakehost"
	"gothrottle/commands"
	"gothrottle/tests/corpus"
)

// The load argument is cl-throttle. The last one counts.
func TestLoad_arguments(t *testing.T) {
	loaded(t) // the first load keeps the names of the hash fields in memory, no other load keeps memory
	for _, row := range []struct {
		args, taken string // a command of another module
		cell        bool   // the module registers CL.THROTTLE
		log         string
	}{
		{"", "", true, ""},
		{"CL-Throttle NO", "", false, ""},
		{"cl-throttle no cl-throttle yes", "", true, ""},
		{"", "cl.throttle", false, "notice: <gothrottle> cl.throttle is taken, probably by redis-cell: left as it is"},
		{"cl-throttle no", "cl.throttle", false, ""},
	} {
		h := newHost(t)
		h.Add(fakehost.Busy, "redis-cell")
		h.Add(fakehost.Taken, row.taken)
		before := h.Alive()
		if ok, log := h.Load(strings.Fields(row.args)...), strings.Join(h.Log(), "\n"); !ok || log != row.log || h.Alive() != before {
			t.Errorf("%q: loaded: %t; log %q, want %q; alive %v, before %v", row.args, ok, log, row.log, h.Alive(), before)
		}
		if got := h.Command("CL.THROTTLE") != nil; got != row.cell {
			t.Errorf("%q: CL.THROTTLE is ours: %t", row.args, got)
		}
		if info := h.Info(); !strings.HasPrefix(info, "# gothrottle\r\ngothrottle_version:") {
			t.Errorf("%q: INFO %q", row.args, info)
		}
		wantReply(t, h, "GO.THROTTLE k 15 30 60", "[0 16 15 -1 2]")
	}
}

// The module refuses wrong arguments, wrong policies, a name that is taken, and a server that lacks what the module needs, and
// says so. A renamed command is refused because replicas would drift without a message. A refused load leaves no command and no
// memory behind, and the next load is like a first one.
func TestLoad_refused(t *testing.T) {
	const refused, later = "warning: <module> gothrottle not loaded: ", "warning: <gothrottle> gothrottle not loaded: "
	type refusal struct {
		args     string
		list     int // what the server lacks, has or refuses
		word     string
		policies string
		log      string
	}
	rows := []refusal{
		{"cl-throttle yes", fakehost.Taken, "cl.throttle", "", later + "the command name cl.throttle is taken"},
		{"cl-throttle no maxmemory 5", 0, "", "", refused + "unknown argument 'maxmemory'"},
		{"%s%n", 0, "", "", refused + "unknown argument '%s%n'"},
		{"cl-throttle maybe", 0, "", "", refused + "cl-throttle must be yes or no, not 'maybe'"},
		{"cl-throttle", 0, "", "", refused + "cl-throttle must be yes or no, not ''"},
		{"", fakehost.Busy, "gothrottle", "", refused + "a module named gothrottle is loaded"},
		{"", fakehost.Taken, "Go.Throttle", "", later + "the command name go.throttle is taken"},
		{"", fakehost.Failing, "SetCommandInfo", "", later + "the server refused the description of " + strings.ToLower(commands.Table[0].Name)},
		{"", fakehost.Failing, "RegisterStringConfig", "", later + "the server refused its configuration"},
		{"", fakehost.Failing, "LoadConfigs", "", later + "a value of its configuration is wrong"},
		{"", 0, "", "a QUOTA 1 1s; b QUOTA 1", "warning: <module> Issue during loading of configuration gothrottle.policies : " +
			"policy 2 (b): 'QUOTA' needs limit and period\n" + later + "a value of its configuration is wrong"},
	}
	for _, f := range fakehost.Functions() {
		log := refused + "this server lacks the function RedisModule_" + f.Name + ", which came with Redis " + f.Since
		if f.Name == "Log" {
			log = ""
		}
		if f.Required {
			rows = append(rows, refusal{"", fakehost.Hidden, f.Name, "", log})
		}
	}
	for _, name := range []string{"HSET", "HDEL", "ZADD", "ZREM", "SET", "DEL", "PEXPIREAT", "ZCOUNT", "ZRANGE", "EXISTS"} {
		rows = append(rows, refusal{"", fakehost.Renamed, name, "",
			later + "it needs the command " + name + ", and this server has no command of that name (see rename-command)"})
	}
	loaded(t) // see TestLoad_arguments
	for _, row := range rows {
		h := newHost(t)
		if row.word != "" {
			h.Add(row.list, row.word)
		}
		if row.policies != "" {
			h.Configure("gothrottle.policies", row.policies)
		}
		before := h.Alive()
		if ok, log := h.Load(strings.Fields(row.args)...), strings.Join(h.Log(), "\n"); ok || log != row.log {
			t.Errorf("%+v: loaded: %t; log %q", row, ok, log)
		}
		if h.Command("GO.ALL") != nil || h.Command("GO.THROTTLE") != nil || h.Alive() != before {
			t.Errorf("%+v: a command was left behind; alive %v, before %v", row, h.Alive(), before)
		}
		h = newHost(t)
		h.Configure("gothrottle.policies", "a QUOTA 1 1s")
		if !h.Load("cl-throttle", "no") || h.Command("CL.THROTTLE") != nil || h.Log() != nil {
			t.Errorf("%+v: the second load: log %q", row, h.Log())
		}
		wantReply(t, h, "GO.POLICY a:k", "[0 1 0 -1 1 0 [0 1 0 -1 1]]")
		wantReply(t, h, "GO.THROTTLE k 15 30 60", "[0 16 15 -1 2]")
	}
}

// The module signals changed keys itself and allows an asynchronous load. On Valkey it sets two more options. It loads without
// any function that is not required.
func TestLoad_functions(t *testing.T) {
	const noImplicitSignal, asyncLoad, skipValidation, slotMigration = 1 << 1, 1 << 2, 1 << 4, 1 << 5
	for valkey, options := range []int{noImplicitSignal | asyncLoad, noImplicitSignal | asyncLoad | skipValidation | slotMigration} {
		for _, lacks := range append(fakehost.Functions(), fakehost.Function{}) {
			if lacks.Required {
				continue
			}
			h := newHost(t)
			h.Set(fakehost.Valkey, valkey)
			h.Add(fakehost.Hidden, lacks.Name)
			if !h.Load() || h.Options() != options {
				t.Errorf("Valkey %d without %q: log %q, options %#x, want %#x", valkey, lacks.Name, h.Log(), h.Options(), options)
			}
			wantReply(t, h, "GO.THROTTLE k 15 30 60", "[0 16 15 -1 2]")
		}
	}
}

// The module sets the ACL categories that the server allows: none before 7.2, none of the module's own before 7.4.
func TestLoad_categories(t *testing.T) {
	const note = "warning: <gothrottle> no ACL categories for go.throttle: grant it by name"
	const own, others, none = "write fast throttle, read slow throttle, admin dangerous slow", "write fast, read slow, admin dangerous slow", ", , "
	for _, row := range []struct {
		list  int // what the server lacks, has or refuses
		word  string
		want  string // of GO.THROTTLE, GO.INFO and GO.TOP
		noted bool
	}{
		{fakehost.Hidden, "", own, false},
		{fakehost.Hidden, "AddACLCategory", others, false},
		{fakehost.Hidden, "SetCommandACLCategories", none, false},
		{fakehost.Categories, "throttle", own, false}, // an earlier load has made it
		{fakehost.Failing, "AddACLCategory", others, false},
		{fakehost.Failing, "SetCommandACLCategories", none, true},
	} {
		h := newHost(t)
		h.Add(row.list, row.word)
		if !h.Load() {
			t.Fatalf("%+v: refused: %q", row, h.Log())
		}
		got := h.Command("GO.THROTTLE").Categories + ", " + h.Command("GO.INFO").Categories + ", " + h.Command("GO.TOP").Categories
		if got != row.want || slices.Contains(h.Log(), note) != row.noted {
			t.Errorf("%+v: categories %q, log %q", row, got, h.Log())
		}
	}
}

// Each load gives the Go runtime at least two processors: see goLoad.
func TestLoad_processors(t *testing.T) {
	before := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(before)
	for _, start := range []int{1, 3} {
		runtime.GOMAXPROCS(start)
		loaded(t)
		if got := runtime.GOMAXPROCS(0); got != max(start, 2) {
			t.Errorf("from %d processors to %d", start, got)
		}
	}
}

// MODULE LOADEX with a CONFIG that nobody knows undoes a load: the server loads the module and unloads it at once. Redis 8
// aborts if the module refuses. Another load then works as a first one, with the module's ACL category, which the server has
// kept. The server's question for the keys of a call isn't a command, and neither is INFO. Once a command has run, even one
// that was an error, the module refuses and says why.
func TestUnload(t *testing.T) {
	h := newHost(t)
	for range 3 {
		if !h.Load() || h.Keys("GO.ALL", "k", "QUOTA", "1", "1") == nil || h.Info() == "" {
			t.Fatalf("load refused: %q", h.Log())
		}
		for _, row := range commands.Table {
			if c := h.Command(row.Name); c == nil || !row.NoKey && !strings.HasSuffix(c.Categories, " throttle") {
				t.Errorf("%s: %+v", row.Name, c)
			}
		}
		if !h.Unload() || h.Log() != nil || h.Command("GO.THROTTLE") != nil {
			t.Fatalf("log %q", h.Log())
		}
	}
	const want = "warning: <gothrottle> gothrottle cannot be unloaded: a Go runtime stays in its process. Restart the server to upgrade or remove it"
	for _, line := range []string{"GO.THROTTLE_RO k 15 30 60", "GO.QUOTA k x 1", "CL.THROTTLE k 15 30 60"} {
		h := loaded(t)
		call(h, line)
		if h.Unload() || strings.Join(h.Log(), "\n") != want {
			t.Errorf("after %s: log %q", line, h.Log())
		}
		wantReply(t, h, "GO.LEASE l 1 60 a", "[0 1 0 -1 60 0]")
	}
}

// Nothing enters Go in a forked child.
func TestForked(t *testing.T) {
	h := loaded(t)
	h.BeChild()
	before := dump(h)
	for _, row := range commands.Table {
		line := strings.ReplaceAll(corpus.Samples[row.Name].Call, "KEY", "k")
		wantReply(t, h, line, commands.ErrForked.Text())
		wantNothing(t, h, line, before)
	}
	if keys := h.Keys("GO.ALL", "k", "QUOTA", "1", "1"); keys != nil {
		t.Errorf("keys %q", keys)
	}
	if got := h.ConfigSet("gothrottle.policies", "a QUOTA 1 1s"); got != "a forked process cannot read policies" {
		t.Errorf("error %q", got)
	}
	h = newHost(t)
	if h.BeChild(); h.Load() {
		t.Error("the module was loaded")
	}
}
