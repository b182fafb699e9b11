// The program of go generate ./script. It joins the parts in script/src to gothrottle.lua, and writes what they name from the
// tables of package commands: error texts, bounds, options, numbers of words.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gothrottle/commands"
	"gothrottle/funnel"
)

// parts are the files, in the order in which the script has them.
var parts = strings.Fields("head plain_throttle plain_window plain_others plain finish call words rates cells throttle zset window quota slots lease release share all run")

func main() {
	text, err := join("src", "../commands/codes.go")
	if err == nil {
		err = os.WriteFile("gothrottle.lua", []byte(text), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "go generate ./script:", err)
		os.Exit(1)
	}
}

// join returns the script. codes is the file that declares the names of errors.
func join(folder, codes string) (string, error) {
	source, err := os.ReadFile(codes)
	if err != nil {
		return "", err
	}
	all := values(string(source))
	var texts, unknown []string
	for _, part := range parts {
		text, err := os.ReadFile(filepath.Join(folder, part+".lua"))
		if err != nil {
			return "", err
		}
		texts = append(texts, placeholder.ReplaceAllStringFunc(string(text), func(name string) string {
			if all[name] == "" {
				unknown = append(unknown, name)
			}
			return all[name]
		}))
	}
	if unknown != nil {
		return "", fmt.Errorf("the tables of commands don't have %q", unknown)
	}
	return strings.Join(texts, "\n"), nil
}

// placeholder matches what values has.
var placeholder = regexp.MustCompile(`\b(TEXT|INTEGER|BOUND|OPTIONS|LIST|NEEDS|WORDS|COMMANDS|SYNTAX)\.\w+`)

// values returns the text of each placeholder.
func values(codes string) map[string]string {
	all := map[string]string{
		"BOUND.period":  fmt.Sprint(int64(funnel.MaxPeriod / funnel.Millisecond)),
		"BOUND.in_use":  fmt.Sprint(int64(funnel.MaxInUse)),
		"BOUND.months":  fmt.Sprint(funnel.MaxMonths),
		"BOUND.clauses": fmt.Sprint(commands.MaxClauses),
		"BOUND.shares":  number.FindString(commands.ErrShareChain.Text()),
		"BOUND.id":      number.FindString(commands.ErrIDTooLong.Text()),
		"BOUND.ids":     number.FindString(commands.ErrTooManyIDs.Text()),
		"BOUND.slots":   between.FindStringSubmatch(commands.ErrSlotsRange.Text())[3],
		"TEXT.With":     quote(strings.Replace(commands.ErrWithUpTo.Text(), "UPTO", "<mode>", 1)),
	}
	for i, name := range errorName.FindAllString(codes, -1) {
		name, text := strings.TrimSpace(name)[len("Err"):], commands.ErrorCode(i+1).Text()
		all["TEXT."+name] = quote(text)
		if m := between.FindStringSubmatch(text); m != nil {
			all["INTEGER."+strings.TrimSuffix(name, "Range")] = fmt.Sprintf("'%s', %s, %s", m[1], m[2], m[3])
		}
	}
	names, exclusive := commands.Options()
	all["OPTIONS.all"], all["OPTIONS.exclusive"] = spaced(names), spaced(exclusive)
	var least []string
	for _, c := range commands.Table {
		key := strings.Replace(c.Name, ".", "_", 1)
		options := tokens(c.Args)
		all["OPTIONS."+key], all["LIST."+key], all["SYNTAX."+key] = spaced(options), quote(list(options, "or")), c.Syntax()
		if c.Writes() && c.Name != "GO.POLICY" {
			least = append(least, fmt.Sprintf("['%s'] = %d", c.Name, c.Least()))
		}
		if c.Name == "GO.ALL" {
			for _, kind := range c.Args[1].Sub {
				var needs []string
				for _, a := range kind.Sub {
					if !a.Optional {
						needs = append(needs, a.Name)
					}
				}
				all["OPTIONS."+kind.Token] = spaced(tokens(kind.Sub))
				all["NEEDS."+kind.Token], all["WORDS."+kind.Token] = quote(list(needs, "and")), strconv.Itoa(len(needs))
			}
		}
	}
	all["COMMANDS.least"] = strings.Join(least, ", ")
	return all
}

var (
	errorName = regexp.MustCompile(`(?m)^\tErr\w+`)
	between   = regexp.MustCompile(`^ERR (.*) must be between (-?\d+) and (\d+)$`)
	number    = regexp.MustCompile(`\d+`)
)

// quote writes a string of Lua.
func quote(s string) string {
	if strings.Contains(s, "'") {
		return `"` + s + `"`
	}
	return "'" + s + "'"
}

// spaced writes a list of words, with a blank around each.
func spaced(words []string) string { return quote(" " + strings.Join(words, " ") + " ") }

// list writes words as errors do: "a, b and c".
func list(words []string, and string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " " + and + " " + words[last]
}

// tokens returns the options among arguments, in the order of errors.
func tokens(args []commands.Arg) (found []string) {
	has := map[string]bool{}
	var find func([]commands.Arg)
	find = func(args []commands.Arg) {
		for _, a := range args {
			if a.Type == commands.ArgBlock && a.Token != "" { // a clause
				continue
			}
			if a.Type == commands.ArgToken {
				has[a.Name] = true
			}
			has[a.Token] = true
			find(a.Sub)
		}
	}
	find(args)
	names, _ := commands.Options()
	return slices.DeleteFunc(names, func(name string) bool { return !has[name] })
}
