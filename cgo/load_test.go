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
	loaded(t) // the first load keeps the names of the hash fields in memory, no other load keeps memory
	for _, row := range []struct {
		args        string
		busy, taken string // another module, and a command of another module
		name        string // the module's
		cell        bool   // the module registers CL.THROTTLE
		log         string
	}{
		{"", "redis-cell", "", "gothrottle", true, ""},
		{"CL-Throttle NO", "", "", "gothrottle", false, ""},
		{"cl-throttle no cl-throttle yes", "", "", "gothrottle", true, ""},
		{"", "", "cl.throttle", "gothrottle", false, "notice: <gothrottle> cl.throttle is taken, probably by redis-cell: left as it is"},
		{"cl-throttle no", "", "cl.throttle", "gothrottle", false, ""},
		{"Module-Name redis-cell cl-throttle no", "", "", "redis-cell", false, ""},
		{"module-name redis-cell module-name gothrottle", "redis-cell", "", "gothrottle", true, ""},
	} {
		h := newHost(t)
		h.Add(fakehost.Busy, row.busy)
		h.Add(fakehost.Taken, row.taken)
		before := h.Alive()
		if ok, log := h.Load(strings.Fields(row.args)...), strings.Join(h.Log(), "\n"); !ok || log != row.log || h.Alive() != before {
			t.Errorf("%q: loaded: %t; log %q, want %q; alive %v, before %v", row.args, ok, log, row.log, h.Alive(), before)
		}
		if got := h.Command("CL.THROTTLE") != nil; got != row.cell {
			t.Errorf("%q: CL.THROTTLE is ours: %t", row.args, got)
		}
		if info := h.Info(); !strings.HasPrefix(info, "# "+row.name+"\r\n"+row.name+"_version:") {
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
		{"module-name redis-cell", fakehost.Busy, "redis-cell", "", refused + "a module named redis-cell is loaded"},
		{"", fakehost.Busy, "gothrottle", "", refused + "a module named gothrottle is loaded"},
		{"module-name Redis-Cell", 0, "", "", refused + "module-name must be gothrottle or redis-cell, not 'Redis-Cell'"},
		{"module-name", 0, "", "", refused + "module-name must be gothrottle or redis-cell, not ''"},
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
		h.Restore()
		h.ClearLog()
		h.Configure("gothrottle.policies", "a QUOTA 1 1s")
		if !h.Load("cl-throttle", "no") || h.Command("CL.THROTTLE") != nil || h.Log() != nil {
			t.Errorf("%+v: the second load: log %q", row, h.Log())
		}
		wantConfig(t, h, "gothrottle.policies", "a QUOTA 1 1s")
		wantReply(t, h, "GO.THROTTLE k 15 30 60", "[0 16 15 -1 2]")
	}
}

// The module signals changed keys itself and allows an asynchronous load. On Valkey it sets two more options, and has
// functions of Valkey's. On Redis it has none of these, even if Redis has one of that name. Of all others it has those that the
// server has, and loads without any that is not required.
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
			for _, f := range fakehost.Functions() {
				if want := (valkey == 1 || !f.OfValkey) && f.Name != lacks.Name; f.Given != want {
					t.Errorf("Valkey %d without %q: the module has %s: %t, want %t", valkey, lacks.Name, f.Name, f.Given, want)
				}
			}
			wantReply(t, h, "GO.THROTTLE k 15 30 60", "[0 16 15 -1 2]")
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
