package tests

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What pages name within their sentences and tables exists: arguments of the image's build, installed files, and
// ACL commands, which run.
func TestPages_namesInTheText(t *testing.T) {
	read := func(path string) string {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		return string(text)
	}
	dockerfile := read("../Dockerfile")
	span := regexp.MustCompile("`([^`\n]+)`")
	argument := regexp.MustCompile(`--build-arg (\w+)=`)
	installed := regexp.MustCompile(`/usr/lib/redis/[\w./]*\w|/usr/share/gothrottle\b[\w./-]*|build/out/[\w.]+`)
	known := regexp.MustCompile(`^(/usr/lib/redis/modules(/gothrottle\.so)?|/usr/share/gothrottle(/gothrottle\.conf|/systemd-drop-in\.conf|/monitoring)?|build/out/(gothrottle\.so|packages|bench|servers))$`)
	s, found := start(t, options{}), 0
	for page, text := range pages(t) {
		for _, m := range span.FindAllStringSubmatch(text, -1) {
			for _, name := range argument.FindAllStringSubmatch(m[1], -1) {
				found++
				assert.Contains(t, dockerfile, "ARG "+name[1]+"=", "%s: %s", page, m[1])
			}
			for _, path := range installed.FindAllString(m[1], -1) {
				found++
				assert.Regexp(t, known, path, "%s: %s", page, m[1])
			}
			if strings.HasPrefix(m[1], "ACL ") && strings.Contains(m[1], " on ") {
				found++
				assert.NoError(t, s.Do(ctx, fields(m[1])...).Err(), "%s: %s", page, m[1])
			}
		}
	}
	assert.Greater(t, found, 5)
}
