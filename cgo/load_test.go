package cgo_test

// No transcript loads the module.

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gothrottle/cgo/fakehost"
	"gothrottle/commands"
)

// The module describes its commands to the server as the command table does.
func TestLoad(t *testing.T) {
	h := loaded(t)
	for _, row := range commands.Table {
		c := h.Command(row.Name)
		if c == nil {
			t.Fatalf("%s is not registered", row.Name)
		}
		keys, flags, categories := "\nkeys: flags=0x11\n", row.Flags, "read slow throttle" // RO, ACCESS
		if row.Writes() {
			keys, categories = "\nkeys: flags=0x32\n", "write slow throttle" // RW, ACCESS, UPDATE
		}
		if strings.Contains(row.Flags, "fast") {
			categories = strings.Replace(categories, "slow", "fast", 1)
		}
		if row.Plan != nil && !row.OneKey { // INCOMPLETE: the command itself names its keys
			keys, flags = strings.Replace(keys, "0x", "0x2", 1), flags+" getkeys-api"
		}
		if row.Name == "GO.TOP" {
			keys, categories = " request_policy:all_shards\n", "admin dangerous slow"
		}
		want := fmt.Sprintf("summary: %s\ncomplexity: %s\nsince: %s\narity: %d\ntips: dont_cache nondeterministic_output",
			row.Summary, row.Complexity, row.Since, row.Arity) + keys + describe(row.Args, "")
		if c.Info != want {
			t.Errorf("%s is described as\n%s\nwant\n%s", row.Name, c.Info, want)
		}
		if c.Arity != row.Arity || c.Flags != flags || c.Categories != categories {
			t.Errorf("%s: arity %d, flags %q, categories %q", row.Name, c.Arity, c.Flags, c.Categories)
		}
	}
	if h.Log() != nil {
		t.Errorf("log %q", h.Log())
	}
}

// describe returns how the module must describe these arguments to the server.
func describe(args []commands.Arg, indent string) (text string) {
	for _, a := range args {
		kind := []string{commands.ArgKey: "key", commands.ArgInteger: "integer", commands.ArgString: "string",
			commands.ArgToken: "token " + a.Name, commands.ArgBlock: "block", commands.ArgOneOf: "oneof"}[a.Type]
		if a.Token != "" {
			kind += " " + a.Token
		}
		if a.Optional {
			kind += " optional"
		}
		if a.Multiple {
			kind += " multiple"
		}
		text += fmt.Sprintf("%sarg: %s %s: %s\n", indent, strings.ToLower(a.Name), kind, a.Summary) + describe(a.Sub, indent+"  ")
	}
	return text
}

// The load arguments are cl-throttle and module-name. The last of each counts. With redis-cell's name the module differs in
// MODULE LIST and in INFO only.
func TestLoad_arguments(t *testing.T) {
	const refused = "warning: <module> gothrottle not loaded: "
	loaded(t) // the first load keeps the names of the hash fields in memory, no other load keeps memory
	for _, row := range []struct {
		args        string
		busy, taken string // another module, and a command of another module
		name        string // the module's; "" if the load is refused
		cell        bool   // the module registers CL.THROTTLE
		log         string
	}{
		{"", "redis-cell", "", "gothrottle", true, ""},
		{"CL-Throttle NO", "", "", "gothrottle", false, ""},
		{"cl-throttle no cl-throttle yes", "", "", "gothrottle", true, ""},
		{"", "", "cl.throttle", "gothrottle", false, "notice: <gothrottle> cl.throttle is taken, probably by redis-cell: left as it is"},
		{"cl-throttle no", "", "cl.throttle", "gothrottle", false, ""},
		{"cl-throttle yes", "", "cl.throttle", "", false, "warning: <gothrottle> gothrottle not loaded: the command name cl.throttle is taken"},
		{"cl-throttle no maxmemory 5", "", "", "", false, refused + "unknown argument 'maxmemory'"},
		{"%s%n", "", "", "", false, refused + "unknown argument '%s%n'"},
		{"cl-throttle maybe", "", "", "", false, refused + "cl-throttle must be yes or no, not 'maybe'"},
		{"cl-throttle", "", "", "", false, refused + "cl-throttle must be yes or no, not ''"},
		{"Module-Name redis-cell cl-throttle no", "", "", "redis-cell", false, ""},
		{"module-name redis-cell module-name gothrottle", "redis-cell", "", "gothrottle", true, ""},
		{"module-name redis-cell", "redis-cell", "", "", false, refused + "a module named redis-cell is loaded"},
		{"", "gothrottle", "", "", false, refused + "a module named gothrottle is loaded"},
		{"module-name Redis-Cell", "", "", "", false, refused + "module-name must be gothrottle or redis-cell, not 'Redis-Cell'"},
		{"module-name", "", "", "", false, refused + "module-name must be gothrottle or redis-cell, not ''"},
	} {
		h := newHost(t)
		h.Add(fakehost.Busy, row.busy)
		h.Add(fakehost.Taken, row.taken)
		before := h.Alive()
		if ok := h.Load(strings.Fields(row.args)...); ok != (row.name != "") || h.Alive() != before {
			t.Errorf("%q: loaded: %t; alive %v, before %v", row.args, ok, h.Alive(), before)
		}
		if got := strings.Join(h.Log(), "\n"); got != row.log {
			t.Errorf("%q: log %q, want %q", row.args, got, row.log)
		}
		if got := h.Command("CL.THROTTLE") != nil; got != row.cell {
			t.Errorf("%q: CL.THROTTLE is ours: %t", row.args, got)
		}
		if row.name == "" {
			if h.Command("GO.THROTTLE") != nil {
				t.Errorf("%q: a command was left behind", row.args)
			}
			continue
		}
		if info := h.Info(); !strings.HasPrefix(info, "# "+row.name+"\r\n"+row.name+"_version:") {
			t.Errorf("%q: INFO %q", row.args, info)
		}
		wantReply(t, h, "GO.THROTTLE k 15 30 60", "[0 16 15 -1 2]")
	}
}

// The module signals changed keys itself and allows an asynchronous load. On Valkey it sets two more options, and has
// functions of Valkey's. On Redis it has none of these, even if Redis has one of that name. Of all others it has those that the
// server has.
func TestLoad_valkey(t *testing.T) {
	const noImplicitSignal, asyncLoad, skipValidation, slotMigration = 1 << 1, 1 << 2, 1 << 4, 1 << 5
	for _, valkey := range []bool{false, true} {
		h, options := newHost(t), noImplicitSignal|asyncLoad
		if valkey {
			h.Set(fakehost.Valkey, 1)
			options |= skipValidation | slotMigration
		}
		if !h.Load() || h.Options() != options {
			t.Errorf("options %#x, want %#x", h.Options(), options)
		}
		for _, f := range fakehost.Functions() {
			if want := valkey || !f.OfValkey; f.Given != want {
				t.Errorf("Valkey %t: the module has %s: %t, want %t", valkey, f.Name, f.Given, want)
			}
		}
	}
}

// The module refuses a server that lacks a required function, and logs the function's name. It
// loads on a server that lacks any other function.
func TestLoad_missingFunction(t *testing.T) {
	for _, f := range fakehost.Functions() {
		t.Run(f.Name, func(t *testing.T) {
			h := newHost(t)
			h.Add(fakehost.Hidden, f.Name)
			ok := h.Load()
			if ok == f.Required {
				t.Fatalf("loaded: %t; log %q", ok, h.Log())
			}
			if !f.Required {
				wantReply(t, h, "GO.THROTTLE k 15 30 60", "[0 16 15 -1 2]")
				return
			}
			text := "gothrottle not loaded: this server lacks the function RedisModule_" + f.Name +
				", which came with Redis " + f.Since
			if got := h.Log(); f.Name != "Log" && !slices.Equal(got, []string{"warning: <module> " + text}) {
				t.Errorf("log %q", got)
			}
			if h.Command("GO.THROTTLE") != nil {
				t.Error("a command was left behind")
			}
			// The same server now has the function. The second load must look it up again.
			h.Restore()
			if !h.Load() {
				t.Errorf("refused again: %q", h.Log())
			}
			wantReply(t, h, "GO.THROTTLE k 15 30 60", "[0 16 15 -1 2]")
		})
	}
}

// The module refuses a server that has renamed a command that the module replicates or reads with:
// replicas would drift without a message.
func TestLoad_commandRenamed(t *testing.T) {
	for _, name := range []string{"HSET", "HDEL", "ZADD", "ZREM", "SET", "DEL", "PEXPIREAT", "ZCOUNT", "ZRANGE", "EXISTS"} {
		h := newHost(t)
		h.Add(fakehost.Renamed, name)
		want := "warning: <gothrottle> gothrottle not loaded: it needs the command " + name +
			", and this server has no command of that name (see rename-command)"
		if h.Load() || !slices.Equal(h.Log(), []string{want}) {
			t.Errorf("log %q", h.Log())
		}
	}
}

// A refused load leaves no command behind. The next load is like a first one.
func TestLoad_takenName(t *testing.T) {
	for list, word := range map[int]string{fakehost.Taken: "Go.Throttle", fakehost.Failing: "SetCommandInfo"} {
		h := newHost(t)
		h.Add(list, word)
		if h.Load() || !strings.HasPrefix(h.Log()[0], "warning: <gothrottle> gothrottle not loaded: ") || !strings.Contains(h.Log()[0], " go.") || h.Command("GO.ALL") != nil {
			t.Errorf("log %q", h.Log())
		}
		h.Restore()
		h.ClearLog()
		if !h.Load("cl-throttle", "no") || h.Command("CL.THROTTLE") != nil || h.Log() != nil {
			t.Errorf("the second load: log %q", h.Log())
		}
	}
}

// The module refuses a second load. The first one goes on undisturbed.
func TestLoad_twice(t *testing.T) {
	h := loaded(t)
	call(h, "GO.THROTTLE k 15 30 60")
	before := h.Info()
	if h.Load() || h.Load("cl-throttle", "no") || h.Load("module-name", "redis-cell") || h.Info() != before {
		t.Errorf("log %q, INFO was\n%s\nis\n%s", h.Log(), before, h.Info())
	}
	wantReply(t, h, "CL.THROTTLE k 15 30 60", "[0 16 14 -1 4]")
}

// The module sets the ACL categories that the server allows: none before 7.2, none of the module's
// own before 7.4.
func TestLoad_categories(t *testing.T) {
	const note = "warning: <gothrottle> no ACL categories for go.throttle: grant it by name"
	for _, row := range []struct {
		list  int // what the server lacks, has or refuses
		word  string
		want  string
		noted bool
	}{
		{fakehost.Hidden, "", "write fast throttle", false},
		{fakehost.Hidden, "AddACLCategory", "write fast", false},
		{fakehost.Hidden, "SetCommandACLCategories", "", false},
		{fakehost.Categories, "throttle", "write fast throttle", false}, // an earlier load has made it
		{fakehost.Failing, "AddACLCategory", "write fast", false},
		{fakehost.Failing, "SetCommandACLCategories", "", true},
	} {
		h := newHost(t)
		h.Add(row.list, row.word)
		if !h.Load() {
			t.Fatalf("%+v: refused: %q", row, h.Log())
		}
		if got := h.Command("GO.THROTTLE").Categories; got != row.want || slices.Contains(h.Log(), note) != row.noted {
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
