package commands_test

// The file from which rueidis and valkey-go generate typed commands has the arguments of the table.

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
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

// GO.ALL is absent: its clauses repeat, which the generators can't express. REWRITE=1 writes the file.
func TestUpstream_typedCommands(t *testing.T) {
	all := map[string]any{}
	for _, row := range commands.Table {
		if row.Name[:3] == "GO." && row.Name != "GO.ALL" && row.Name != "GO.ALL_RO" {
			all[row.Name] = map[string]any{"summary": row.Summary, "since": row.Since, "group": "gothrottle", "arguments": typedOf(row.Args)}
		}
	}
	var want bytes.Buffer
	encoder := json.NewEncoder(&want)
	encoder.SetIndent("", "  ")
	require.NoError(t, encoder.Encode(all))
	const name = "../docs/upstream/commands_gothrottle.json"
	if os.Getenv("REWRITE") != "" {
		require.NoError(t, os.WriteFile(name, want.Bytes(), 0o644))
	}
	got, err := os.ReadFile(name)
	require.NoError(t, err)
	assert.Equal(t, want.String(), string(got), "REWRITE=1 go test ./commands -run Upstream")
}
