package commands_test

// This test writes the file from which rueidis and valkey-go generate typed commands: docs/upstream/listings.md.

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"gothrottle/commands"
)

// typed is an argument, as those generators read it.
type typed struct {
	Name      string  `json:"name"`
	Token     string  `json:"token,omitempty"`
	Type      string  `json:"type"`
	Optional  bool    `json:"optional,omitempty"`
	Multiple  bool    `json:"multiple,omitempty"`
	Arguments []typed `json:"arguments,omitempty"`
}

func typedOf(args []commands.Arg) (all []typed) {
	kinds := map[commands.ArgType]string{commands.ArgKey: "key", commands.ArgInteger: "integer", commands.ArgString: "string",
		commands.ArgToken: "pure-token", commands.ArgBlock: "block", commands.ArgOneOf: "oneof"}
	for _, a := range args {
		one := typed{a.Name, a.Token, kinds[a.Type], a.Optional, a.Multiple, typedOf(a.Sub)}
		switch {
		case a.Type == commands.ArgToken:
			one.Token = a.Name
		case a.Token != "": // methods are called by the names
			one.Name = strings.ToLower(a.Token)
		}
		all = append(all, one)
	}
	return all
}

// GO.ALL is absent: its clauses repeat, which the generators can't express.
func TestUpstream_typedCommands(t *testing.T) {
	all := map[string]any{}
	for _, row := range commands.Table {
		if row.Name[:3] == "GO." && row.Name != "GO.ALL" && row.Name != "GO.ALL_RO" {
			all[row.Name] = map[string]any{"summary": row.Summary, "since": row.Since, "group": "gothrottle", "arguments": typedOf(row.Args)}
		}
	}
	require.Greater(t, len(all), 12)
	text, err := json.MarshalIndent(all, "", "  ")
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll("../build/out", 0o755))
	require.NoError(t, os.WriteFile("../build/out/commands_gothrottle.json", text, 0o644))
}
