package tests

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	servers "gothrottle/tests/server"
)

// buildPanicking builds the module with one more command, GO.PANIC. Its handler calls panic,
// or dereferences nil if the argument says so.
func buildPanicking(t *testing.T) string { return buildModule(t, "-tags", "gothrottle_panic") }

// buildModule builds the module with further arguments of go build, and returns the file.
func buildModule(t *testing.T, args ...string) string {
	t.Helper()
	if env.image != "" {
		t.Skip("the image has the released module only; the run with local servers has this test")
	}
	module := filepath.Join(t.TempDir(), "gothrottle.so")
	build := exec.Command("go", append(append([]string{"build", "-buildmode=c-shared", "-buildvcs=false", "-o", module}, args...),
		"gothrottle/module")...)
	build.Env = append(os.Environ(), "CGO_ENABLED=1", "GOARCH="+env.goarch, "CC="+cmp.Or(os.Getenv("GOTHROTTLE_CC"), "cc"))
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, os.Chmod(module, 0o755)) // the server loads only executable files
	return module
}

// compile makes a shared library for the server of a C file in testdata.
func compile(t testing.TB, source string) string {
	t.Helper()
	library := filepath.Join(t.TempDir(), source+".so")
	require.NoError(t, servers.CompileC(filepath.Join("testdata", source), library))
	return library
}
