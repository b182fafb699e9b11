package fakehost

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// toyHost returns a server with the toy module. Each test looks for faults itself.
func toyHost(t *testing.T) *Host {
	t.Helper()
	h := newToy()
	t.Cleanup(h.Close)
	if !h.Load() {
		t.Fatalf("load refused: %q", h.Log())
	}
	return h
}

// wantRow runs a command line and compares the reply and the faults.
func wantRow(t *testing.T, h *Host, line, want string, faults ...string) {
	t.Helper()
	before := len(h.Faults())
	if got := h.Call(strings.Fields(line)...).String(); got != want {
		t.Errorf("%s: reply %q, want %q", line, got, want)
	}
	if got := h.Faults()[before:]; !slices.Equal(got, faults) {
		t.Errorf("%s: faults %q, want %q", line, got, faults)
	}
}

func TestCall_zcount(t *testing.T) {
	h := toyHost(t)
	h.PutZset("z", Member{1, "a"}, Member{2, "b"}, Member{2.5, "c"})
	h.PutString("s", "1")
	for _, row := range []struct{ line, want string }{
		{"toy z zcount -inf +inf", "3"},
		{"toy z zcount 1 2", "2"},
		{"toy z zcount (1 2", "1"},
		{"toy z zcount 1 (2", "1"},
		{"toy z zcount 2 1", "0"},
		{"toy z zcount 2.5 inf", "1"},
		{"toy z zcount-open 1 2", "2"},
		{"toy none zcount 1 2", "0"},
		{"toy s zcount 1 2", wrongTypeText},
		{"toy s zcount 1 x", "ERR min or max is not a float"},
		{"toy z zcount 1 nan", "ERR min or max is not a float"},
		{"toy z arity", "EINVAL"},
	} {
		wantRow(t, h, row.line, row.want)
	}
}

const wrongTypeText = "WRONGTYPE Operation against a key holding the wrong kind of value"

func TestCall_zrange(t *testing.T) {
	h := toyHost(t)
	h.PutZset("z", Member{-1.5, "a"}, Member{0.1, "b"}, Member{1e15, "c"}, Member{1 << 53, "d"}, Member{1e300, "e"})
	h.PutString("s", "1")
	for _, row := range []struct{ line, want string }{
		{"toy z zrange 0 -1", "a -1.5 b 0.1 c 1000000000000000 d 9007199254740992 e 1e+300 ."},
		{"toy z zrange 1 2", "b 0.1 c 1000000000000000 ."},
		{"toy z zrange -2 100", "d 9007199254740992 e 1e+300 ."},
		{"toy z zrange -100 0", "a -1.5 ."},
		{"toy z zrange 0 -100", "."},
		{"toy z zrange 5 9", "."},
		{"toy z zrange 3 2", "."},
		{"toy none zrange 0 -1", "."},
		{"toy s zrange 0 -1", wrongTypeText},
		{"toy z zrange-words 0 01 withscores", "ERR value is not an integer or out of range"},
		{"toy z zrange-words 0 0 withscores", "a -1.5 ."},
	} {
		wantRow(t, h, row.line, row.want)
	}
}

// A key of RedisModule_Call expires as any other key does.
func TestCall_expiredKey(t *testing.T) {
	h := toyHost(t)
	h.PutZset("z", Member{1, "a"})
	h.Expire("z", h.Now()/1000-1)
	wantRow(t, h, "toy z zcount 0 9", "0")
	if got := h.Effects(); !slices.Equal(got, []string{"DEL z"}) {
		t.Errorf("effects %q", got)
	}
}

func TestCall_faults(t *testing.T) {
	h := toyHost(t)
	h.PutZset("z", Member{1, "a"})
	wantRow(t, h, "toy z format", "EBADF", "Call ZCOUNT: the fake host has no format '!'")
	wantRow(t, h, "toy z other", "ENOENT", "Call: the fake host cannot run DEL")
	wantRow(t, h, "toy z zrange-words 0 0 rev", "EINVAL", "Call: the fake host runs ZRANGE WITHSCORES only")
	wantRow(t, h, "toy z undeclared", "0", "ZCOUNT of undeclared, which the server does not see in the words")
	wantRow(t, h, "toy z leak", "leaked", "toy left 0 strings, 0 open keys, 0 blocks, 1 replies")
	wantRow(t, h, "toy z free", "freed", "toy left 0 strings, 0 open keys, 0 blocks, -1 replies")
	h.RenameAway("zcount")
	wantRow(t, h, "toy z zcount 0 1", "ENOENT")
}

func TestAPICalls(t *testing.T) {
	h := toyHost(t)
	h.PutZset("z", Member{1, "a"}, Member{2, "b"}, Member{3, "c"})
	h.ResetAPICalls()
	wantRow(t, h, "toy z zrange 0 1", "a 1 b 2 .")
	// IsKeysPositionRequest 2, KeyAtPosWithFlags, StringToLongLong 2, Call, CallReplyType, CallReplyLength 5, CallReplyArrayElement 4,
	// CallReplyStringPtr 4, ReplyWithError, FreeCallReply.
	if got := h.APICalls(); got != 22 {
		t.Errorf("%d calls", got)
	}
	if got := h.APICallsOf("CallReplyArrayElement"); got != 4 {
		t.Errorf("%d calls of CallReplyArrayElement", got)
	}
	if got := h.Steps(); got != 2 {
		t.Errorf("%d steps", got)
	}
	h.ResetAPICalls()
	if h.APICalls() != 0 || h.APICallsOf("Call") != 0 || h.Steps() != 0 {
		t.Error("the reset left a count")
	}
}

// Every function of the API counts its calls, and the host itself calls none of them.
func TestAPICalls_everyFunction(t *testing.T) {
	files, err := filepath.Glob("*.c")
	if err != nil {
		t.Fatal(err)
	}
	var host string
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if name != "toy.c" {
			host += string(text)
		}
	}
	for _, f := range Functions() {
		if n := strings.Count(host, "    CALLED("+f.Name+");\n"); n != 1 {
			t.Errorf("%s counts %d times", f.Name, n)
		}
		if n := strings.Count(host, "fake_"+f.Name+"("); n != 1 {
			t.Errorf("fake_%s stands %d times in the host", f.Name, n)
		}
	}
}

func TestKeys_incompleteSpec(t *testing.T) {
	h := toyHost(t)
	for _, row := range []struct{ line, want string }{
		{"toy a x", "a"},
		{"toy a x key b", "a b"},
		{"TOY a key b x y KEY c key key", "a b c key"},
		{"other a", ""},
	} {
		if got := strings.Join(h.Keys(strings.Fields(row.line)...), " "); got != row.want {
			t.Errorf("%s: keys %q, want %q", row.line, got, row.want)
		}
	}
	wantRow(t, h, "toy a open a b key b", "4", "OpenKey of key, which the server does not see in the words")
	wantRow(t, h, "toy a open c x key b", "4", "OpenKey of c, which the server does not see in the words",
		"OpenKey of x, which the server does not see in the words",
		"OpenKey of key, which the server does not see in the words")
	wantRow(t, h, "toy a open-when-asked", "no such action",
		"OpenKey of a, which the server does not see in the words")
	wantRow(t, h, "toy a open beyond", "1", "toy told a key at 4 of 4 words",
		"OpenKey of beyond, which the server does not see in the words")
}

// Host.Keys leaves what the latest call has written down.
func TestKeys_leavesEffects(t *testing.T) {
	h := toyHost(t)
	h.PutString("a", "x")
	h.Expire("a", h.Now()/1000-1)
	wantRow(t, h, "toy a open a", "1")
	h.Keys("toy", "a", "x")
	if got := h.Effects(); !slices.Equal(got, []string{"DEL a"}) {
		t.Errorf("effects %q", got)
	}
}

func TestUnload(t *testing.T) {
	h := toyHost(t)
	if !h.Unload() {
		t.Fatal("refused")
	}
	if h.Command("toy") != nil || h.Info("") != "" {
		t.Errorf("the unload left the command %v, INFO %q", h.Command("toy"), h.Info(""))
	}
	if h.Unload() {
		t.Error("unloaded without a module")
	}
	h.ClearLog()
	if !h.Load() {
		t.Fatal("second load refused")
	}
	if got := h.Log(); !slices.Equal(got, []string{"notice: <toy> EBUSY"}) {
		t.Errorf("log %q: the ACL category must have stayed", got)
	}
	wantRow(t, h, "toy a open a", "1")
	if faults := h.Faults(); faults != nil {
		t.Errorf("faults %q", faults)
	}
}

// A load that fails removes the ACL category that it has added.
func TestLoad_failedLeavesNothing(t *testing.T) {
	h := newToy()
	t.Cleanup(h.Close)
	h.AddCategory("other")
	if h.Load("toy", "load") {
		t.Fatal("loaded")
	}
	if h.Command("toy") != nil {
		t.Error("the command stayed")
	}
	h.ClearLog()
	if !h.Load() || h.Log() != nil {
		t.Errorf("second load: log %q", h.Log())
	}
}

func TestLoadThenUnload(t *testing.T) {
	h := newToy()
	t.Cleanup(h.Close)
	if h.LoadThenUnload("toy", "unload") {
		t.Error("unloaded against the will of the module")
	}
	h = newToy()
	t.Cleanup(h.Close)
	if !h.LoadThenUnload() {
		t.Error("refused")
	}
	if h.Command("toy") != nil {
		t.Error("the command stayed")
	}
}

func TestIsModuleNameBusy(t *testing.T) {
	h := newToy()
	t.Cleanup(h.Close)
	h.BusyName("redis-cell")
	if h.Load("Redis-Cell") {
		t.Error("loaded under the name of another module")
	}
	if !h.Load() {
		t.Error("refused a free name")
	}
	h.ClearLog()
	if h.Load() || h.Log() != nil {
		t.Errorf("a second load: log %q", h.Log())
	}
	h.Restore()
	h.Unload()
	if !h.Load("redis-cell") {
		t.Error("refused a name that has become free")
	}
	if faults := h.Faults(); faults != nil {
		t.Errorf("faults %q", faults)
	}
}

func TestInfo_moduleName(t *testing.T) {
	h := newToy()
	t.Cleanup(h.Close)
	if !h.Load("redis-cell") {
		t.Fatal("refused")
	}
	for section, want := range map[string]string{
		"":           "# redis-cell\r\nredis-cell_answer:42\r\n",
		"redis-cell": "# redis-cell\r\nredis-cell_answer:42\r\n",
		"toy":        "",
	} {
		if got := h.Info(section); got != want {
			t.Errorf("INFO %s: %q, want %q", section, got, want)
		}
	}
}

func TestSetCommandInfo_tips(t *testing.T) {
	h := toyHost(t)
	if got := h.Command("toy").Info; !strings.Contains(got, "\ntips: nondeterministic_output\n") {
		t.Errorf("description %q", got)
	}
}

func TestEncoding(t *testing.T) {
	h := toyHost(t)
	long := strings.Repeat("x", 44)
	for _, row := range []struct{ text, want string }{
		{"0", "int"},
		{"-9223372036854775808", "int"},
		{"9223372036854775807", "int"},
		{"9223372036854775808", "embstr"},
		{"01", "embstr"},
		{"-0", "embstr"},
		{"", "embstr"},
		{long, "embstr"},
		{long + "x", "raw"},
	} {
		h.PutString("s", row.text)
		if got := h.Encoding("s"); got != row.want {
			t.Errorf("%q is %q, want %q", row.text, got, row.want)
		}
	}
	h.PutZset("z")
	if got := h.Encoding("z") + h.Encoding("none"); got != "" {
		t.Errorf("encoding %q of no string", got)
	}
}

// StringDMA makes a string raw, even if it only reads. No other look at a string does so.
func TestEncoding_afterStringDMA(t *testing.T) {
	for _, row := range []struct{ action, want string }{
		{"open s", "int"},
		{"content", "raw"},
		{"content-to-write", "raw"},
	} {
		h := toyHost(t)
		h.PutString("s", "5")
		h.Call(strings.Fields("toy s " + row.action)...)
		if got := h.Encoding("s"); got != row.want || h.StringOf("s") != "5" {
			t.Errorf("%s: %q is %q, want %q", row.action, h.StringOf("s"), got, row.want)
		}
	}
}
