package main

import (
	"archive/zip"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Redis Software wants module.json and the module at the root of the zip, and all of these fields.
func TestZip(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1767225600")
	so, out := filepath.Join(t.TempDir(), "x.so"), filepath.Join(t.TempDir(), "x.zip")
	require.NoError(t, os.WriteFile(so, []byte("module"), 0o600))
	require.NoError(t, run(so, "1.2.3", out))
	z, err := zip.OpenReader(out)
	require.NoError(t, err)
	defer z.Close()
	require.Len(t, z.File, 2)
	for i, parts := range [][]string{{`"module_name": "gothrottle"`, `"version": 10203`, `"semantic_version": "1.2.3"`, `"display_name"`, `"min_redis_version"`, `"command_line_args"`,
		`"capabilities": [`, `"command_name": "GO.ALL",` + "\n      \"command_arity\": -4,\n      \"first_key\": 1,", `"command_name": "GO.TOP",` + "\n      \"command_arity\": -1,\n      \"first_key\": 0,"}, {"module"}} {
		assert.Equal(t, []string{"module.json", "gothrottle.so"}[i], z.File[i].Name)
		r, err := z.File[i].Open()
		require.NoError(t, err)
		text, _ := io.ReadAll(r)
		for _, part := range parts {
			assert.Contains(t, string(text), part)
		}
	}
}
