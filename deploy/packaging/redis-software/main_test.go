package main

import (
	"archive/zip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Redis Software wants module.json and the module at the root of the zip, and all of these fields.
func TestZip(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1767225600")
	so, out := filepath.Join(t.TempDir(), "x.so"), filepath.Join(t.TempDir(), "x.zip")
	if err := os.WriteFile(so, []byte("module"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(so, "1.2.3", out); err != nil {
		t.Fatal(err)
	}
	z, err := zip.OpenReader(out)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for i, parts := range [][]string{{`"module_name": "gothrottle"`, `"version": 10203`, `"semantic_version": "1.2.3"`, `"display_name"`, `"min_redis_version"`, `"command_line_args"`,
		`"capabilities": [`, `"command_name": "GO.ALL",` + "\n      \"command_arity\": -5,\n      \"first_key\": 1,", `"command_name": "GO.TOP",` + "\n      \"command_arity\": -1,\n      \"first_key\": 0,"}, {"module"}} {
		r, err := z.File[i].Open()
		if err != nil || len(z.File) != 2 || z.File[i].Name != []string{"module.json", "gothrottle.so"}[i] {
			t.Fatal(err, z.File[i].Name)
		}
		text, _ := io.ReadAll(r)
		for _, part := range parts {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s lacks %s", text, part)
			}
		}
	}
}
