package corpus

import (
	"embed"
	"regexp"
	"strings"
)

//go:embed *.txt
var texts embed.FS

// Sample is an admitted call of a command.
type Sample struct {
	Call   string // with KEY in place of the key
	First  string // the reply on a new key; arrays are in brackets
	Second string // the reply to the same call at the same time, after the first one
}

// Tests of what all commands have in common make these calls, by the names of commands.
var (
	Samples        = map[string]*Sample{} // by command; from the cases with a line @sample
	SamplePolicies string                 // the policies that the samples need
)

// Cases are all cases of all files.
var Cases []*Case

func init() {
	files, _ := texts.ReadDir(".")
	for _, file := range files {
		text, _ := texts.ReadFile(file.Name())
		cases, err := Parse(string(text))
		if err != nil {
			panic(file.Name() + ": " + err.Error())
		}
		Cases = append(Cases, cases...)
	}
	for _, c := range Cases {
		if c.has("@sample") {
			c.sample()
		}
	}
}

func (c *Case) sample() {
	for _, s := range c.Steps {
		name, _, _ := strings.Cut(s.Text, " ")
		switch sample := Samples[name]; {
		case !s.Call:
		case name == "CONFIG":
			words, _ := Words(s.Text, 0)
			SamplePolicies += words[3]
		case sample == nil:
			call := regexp.MustCompile(`\bk\b`).ReplaceAllString(s.Text, "KEY")
			Samples[name] = &Sample{call, bracketed(s.Reply), bracketed(s.Reply)}
		default:
			sample.Second = bracketed(s.Reply)
		}
	}
}

func bracketed(reply string) string {
	if strings.Contains(reply, " ") {
		return "[" + reply + "]"
	}
	return reply
}
