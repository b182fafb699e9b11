package tests

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func mustDocker(t testing.TB, args ...string) string {
	t.Helper()
	out, err := env.docker.Do(args...)
	require.NoError(t, err)
	return out
}

// newVolume creates a volume, and newNetwork a network on which containers reach each other by name. newNetwork returns ""
// if servers are local processes.
func newVolume(t testing.TB) string { return created(t, "volume") }

func newNetwork(t testing.TB) string {
	t.Helper()
	if env.docker == nil {
		return ""
	}
	return created(t, "network")
}

func created(t testing.TB, kind string) string {
	t.Helper()
	name, err := env.docker.Create(kind)
	require.NoError(t, err)
	// Cleanups run last in, first out, so the containers are removed before.
	t.Cleanup(func() { env.docker.Remove(kind, name) })
	return name
}

func lastLine(text string) string { return text[strings.LastIndex(text, "\n")+1:] }
