package commands_test

import (
	"cmp"
	"regexp"
	"strings"
	"testing"

	"gothrottle/commands"
	"gothrottle/funnel"
	"gothrottle/script"
	"gothrottle/tests/corpus"
	"gothrottle/tests/world"
)

// Random calls: the commands and their read-only twins decide and reply as the exact models do. A server that applies
// the effects of a call holds the same, with the same expiries.
func TestAll_random(t *testing.T) {
	calls := 6000
	if testing.Short() {
		calls = 2000
	}
	world.Compare(t, &followed{newTwins(t), corpus.NewMemory(), corpus.Epoch}, calls, 0)
}

// followed is package memory and a replica of it.
type followed struct {
	*twins
	replica *corpus.Memory
	now     funnel.Micros
}

func (h *followed) Empty() {
	h.Begin(int64(h.now))
	h.replica.Begin(int64(h.now))
}

func (h *followed) At(step funnel.Micros, batch []world.Made) (now funnel.Micros, replies []string) {
	h.now += step
	h.Clock(int64(h.now))
	h.replica.Clock(int64(h.now))
	for _, c := range batch {
		if c.Policies != "" && h.SetPolicies(c.Policies) != nil {
			h.t.Fatal(c.Policies)
		}
		reply, effects := h.Call(c.Words)
		replies = append(replies, corpus.ReplyText(reply))
		for _, effect := range effects {
			_, _ = h.replica.Do(0, effect...)
		}
		if a, b := h.Dump(), h.replica.Dump(); a != b {
			h.t.Errorf("%q: %q: it holds\n%s\nand its replica\n%s", c.Words, effects, a, b)
		}
	}
	return h.now, replies
}

// options calls visit with each option of arguments, after the name of the command and that of the clause, if any.
func options(args []commands.Arg, name, clause string, visit func(name string)) {
	for _, a := range args {
		if word := cmp.Or(a.Token, a.Name); commands.IsOption(word) {
			visit(name + "/" + clause + "/" + word)
		}
		options(a.Sub, name, cmp.Or(a.Token, clause), visit)
	}
}

// needsModule has the commands that the script lacks, and why.
var needsModule = map[string]string{"GO.POLICY": "policies are settings of the server"}

// The world makes calls with each option of the commands that it makes, and reads them, so that TestAll_random compares the
// option with the models. The script lists the option.
func TestOptions_everywhere(t *testing.T) {
	read, listed := map[string]bool{}, map[string]bool{}
	for seed := range uint64(40) {
		g := world.NewGenerator(seed, 8)
		g.Tight, g.Shares = true, seed%2 == 1
		policies := world.NewPolicies(g.Policies())
		for range 300 {
			w, clause := g.Call(), ""
			_, known := policies.Parse(w)
			for _, word := range w {
				if commands.Find("GO."+word) != nil {
					clause = word
				}
				for _, name := range []string{w[0] + "//" + word, w[0] + "/" + clause + "/" + word} {
					read[name] = read[name] || known
				}
			}
		}
	}
	list := func(name, words string) {
		for _, word := range strings.Fields(words) {
			listed[name+"/"+word] = true
		}
	}
	for _, m := range regexp.MustCompile(`(?s)function make\.([A-Z]+)\(.*?\boptions = '(.*?)', clause_options = '(.*?)'`).FindAllStringSubmatch(script.Text, -1) {
		list("GO."+m[1]+"/", m[2])
		list("GO.ALL/"+m[1], m[3])
	}
	list("GO.ALL/", regexp.MustCompile(`go\.options\(i, '(.*?)'\)`).FindStringSubmatch(script.Text)[1])
	for _, row := range commands.Table {
		name := strings.TrimSuffix(row.Name, "_RO")
		options(row.Args, row.Name, "", func(option string) {
			_, made := read[row.Name+"//"+row.Name]
			if made && !read[option] {
				t.Errorf("tests/world makes no call with %s that its reader knows", option)
			}
			if option = strings.Replace(option, "_RO", "", 1); made && needsModule[name] == "" && !listed[option] {
				t.Errorf("script/gothrottle.lua lists no %s", option)
			}
		})
	}
}
