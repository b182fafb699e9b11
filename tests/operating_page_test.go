package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const operatingPage = "docs/operating.md"

// section returns the text under a heading of a page, up to the next heading of the same kind.
func section(t *testing.T, page, heading string) string {
	t.Helper()
	level, _, _ := strings.Cut(heading, " ")
	_, text, found := strings.Cut(pages(t)[page], "\n"+heading+"\n")
	require.True(t, found, "%s: no heading %q", page, heading)
	text, _, _ = strings.Cut(text, "\n"+level+" ")
	return text
}

// rows returns the rows of all tables of a text, cell by cell, without their headings.
func rows(text string) (all [][]string) {
	body := false
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "|") {
			body = false
			continue
		}
		if strings.HasPrefix(line, "|--") || strings.HasPrefix(line, "|:") {
			body = true
			continue
		}
		if !body {
			continue
		}
		var cells []string
		for _, cell := range strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		all = append(all, cells)
	}
	return all
}

// The sizes of the page are those of docs/benchmarks.md, and the limiters per GB follow from them.
func TestOperating_sizing(t *testing.T) {
	benchOf := map[string]string{
		"GO.THROTTLE": "GO.THROTTLE", "GO.QUOTA": "GO.QUOTA", "GO.ALL with 3 THROTTLE at one key": "GO.ALL 3 cells",
		"GO.WINDOW, limit 100, full": "GO.WINDOW 100", "GO.WINDOW, limit above 120, full": "GO.WINDOW 10^6",
	}
	measured := map[string][][]string{} // by server: the rows with six figures
	for _, server := range []string{"Redis 8.6", "Valkey 9.1", "Redis 7.0"} {
		full := regexp.MustCompile(`(?m)^### (` + regexp.QuoteMeta(server) + `\S*)$`).FindStringSubmatch(pages(t)["docs/benchmarks.md"])
		require.NotNil(t, full, server)
		measured[server] = rows(section(t, "docs/benchmarks.md", "### "+full[1]))
	}
	figure := func(server, limiter string, column int) string {
		for _, row := range measured[server] {
			if row[0] == benchOf[limiter] {
				return row[column]
			}
		}
		t.Fatalf("%s: the benchmarks have no row of %q", server, limiter)
		return ""
	}
	table := rows(section(t, operatingPage, "## Sizing"))
	require.Len(t, table, len(benchOf))
	for _, row := range table {
		bytes := figure("Redis 8.6", row[0], 5)
		size, err := strconv.ParseFloat(bytes, 64)
		require.NoError(t, err)
		millions := fmt.Sprintf("%.1f", float64(int(1e9/size/1e5))/10)
		assert.Equal(t, []string{row[0], bytes, figure("Valkey 9.1", row[0], 5), figure("Redis 7.0", row[0], 5),
			millions, figure("Redis 8.6", row[0], 6)}, row)
	}
}

// The page explains each line that the sources write to the log, and no other line.
func TestOperating_logLines(t *testing.T) {
	var lines []string // the formats of the sources
	files, err := filepath.Glob("../cgo/*.[cg]*")
	require.NoError(t, err)
	calls := regexp.MustCompile(`api\.Log\([^;]*;|const char \*text = [^;]*;|logPanic\(fmt\.Sprintf\([^\n]*`)
	text := regexp.MustCompile(`"((?:[^"\\]|\\.)*)"`)
	for _, file := range files {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, call := range calls.FindAllString(string(source), -1) {
			format := ""
			for _, part := range text.FindAllStringSubmatch(call, -1) {
				if part[1] != "warning" && part[1] != "notice" {
					format += part[1]
				}
			}
			format, _, _ = strings.Cut(format, `\n`)
			if strings.Trim(format, "%s") != "" {
				lines = append(lines, format)
			}
		}
	}
	require.Greater(t, len(lines), 10)
	table := rows(section(t, operatingPage, "## Log lines"))
	matched := map[int]bool{}
	for _, format := range lines {
		pattern := regexp.QuoteMeta(format)
		pattern = regexp.MustCompile("^`" + regexp.MustCompile(`%[sv]`).ReplaceAllString(pattern, "[A-Z]+") + "`$").String()
		i := slices.IndexFunc(table, func(row []string) bool { return regexp.MustCompile(pattern).MatchString(row[0]) })
		if assert.GreaterOrEqual(t, i, 0, "the page lacks the line %q", format) {
			matched[i] = true
		}
	}
	for i, row := range table {
		assert.True(t, matched[i], "no source writes the line %s", row[0])
		assert.Len(t, row, 3, row[0])
	}
	// Each call of the log was found.
	count := 0
	for _, file := range files {
		source, _ := os.ReadFile(file)
		if !strings.HasSuffix(file, "_test.go") {
			count += len(regexp.MustCompile(`api\.Log\(|logPanic\(fmt`).FindAllIndex(source, -1))
		}
	}
	assert.Equal(t, count, len(lines)+1, "shim_log passes on what Go logs")
}

// Each alert has its paragraph, and its runbook leads there.
func TestOperating_alerts(t *testing.T) {
	text, err := os.ReadFile("../deploy/monitoring/alerts.yml")
	if os.IsNotExist(err) {
		t.Skip("the alerts are not in this tree")
	}
	require.NoError(t, err)
	var alerts, headings []string
	for _, m := range regexp.MustCompile(`(?m)^ *- alert: (\w+)$`).FindAllStringSubmatch(string(text), -1) {
		alerts = append(alerts, m[1])
		assert.Contains(t, string(text), "runbook_url: docs/operating.md#"+strings.ToLower(m[1])+"\n")
	}
	require.NotEmpty(t, alerts)
	assert.Equal(t, len(alerts), strings.Count(string(text), "runbook_url: "))
	for _, m := range regexp.MustCompile(`(?m)^### (\w+)$`).FindAllStringSubmatch(section(t, operatingPage, "## Alerts"), -1) {
		headings = append(headings, m[1])
	}
	assert.ElementsMatch(t, alerts, headings)
}

// The users of the page may do what the page says, and no more.
func TestOperating_users(t *testing.T) {
	s := start(t, options{})
	users, exporter := 0, ""
	for line := range strings.Lines(section(t, operatingPage, "## Users")) {
		rule, found := strings.CutPrefix(strings.TrimSpace(line), "user ")
		if !found || strings.HasPrefix(rule, "default") {
			continue
		}
		users++
		if words, ok := strings.CutPrefix(rule, "exporter on >change-me "); ok {
			exporter = words
		}
		require.NoError(t, s.Do(ctx, append([]any{"ACL", "SETUSER"}, fields(rule)...)...).Err(), rule)
	}
	require.Equal(t, 3, users)
	if page, found := pages(t)["docs/monitoring.md"]; found {
		assert.Contains(t, strings.ReplaceAll(page, `\|`, "|"), "ACL SETUSER exporter on '>change-me' "+exporter+"\n", "both pages have the same user")
	}
	script := "return redis.call('INFO', 'gothrottle')"
	if text, err := os.ReadFile("../deploy/monitoring/exporter.lua"); err == nil {
		script = string(text)
	}
	for _, row := range []struct {
		user string
		may  bool
		call []any
	}{
		{"app", true, fields("GO.THROTTLE limits:k 1 1 60")},
		{"app", true, fields("GO.THROTTLE_RO limits:k 1 1 60")},
		{"app", false, fields("GO.THROTTLE other:k 1 1 60")},
		{"app", false, fields("DEL limits:k")},
		{"app", false, fields("GO.TOP")},
		{"app", false, fields("CONFIG GET gothrottle.policies")},
		{"exporter", true, []any{"EVAL", script, "0"}},
		{"exporter", true, fields("INFO all")},
		{"exporter", true, fields("SLOWLOG LEN")},
		{"exporter", false, fields("CONFIG GET *")},
		{"exporter", false, fields("GO.THROTTLE limits:k 1 1 60")},
		{"exporter", false, fields("GO.INFO limits:k")},
		{"exporter", false, fields("GO.TOP")},
		{"exporter", false, fields("KEYS *")},
		{"operator", true, fields("GO.INFO limits:k")},
		{"operator", true, fields("DEL limits:k")},
		{"operator", true, fields("CONFIG SET gothrottle.top-keys 9")},
		{"operator", true, fields("GO.TOP")},
		{"operator", false, fields("FLUSHALL")},
	} {
		w := s.wireFor(t)
		require.Equal(t, status("OK"), w.do("AUTH", row.user, "change-me"))
		mayOrNot(t, row.may, w.do(row.call...), fmt.Sprint(row.user, row.call[0]))
	}
}

// Each file of deploy/ that the page names exists, in a tree that has them.
func TestOperating_files(t *testing.T) {
	if _, err := os.Stat("../deploy/packaging"); err != nil {
		t.Skip("the packages are not in this tree")
	}
	for _, path := range regexp.MustCompile("`(deploy/[^` ]+)`").FindAllStringSubmatch(pages(t)[operatingPage], -1) {
		_, err := os.Stat("../" + path[1])
		assert.NoError(t, err)
	}
}

// Each field of INFO gothrottle that the page names exists.
func TestOperating_fields(t *testing.T) {
	fields := start(t, options{}).counters()
	named := regexp.MustCompile("`(gothrottle_\\w+)`").FindAllStringSubmatch(pages(t)[operatingPage], -1)
	require.NotEmpty(t, named)
	for _, field := range named {
		assert.Contains(t, fields, field[1])
	}
}

// The commands of an installation are those of README.md, which the test of the packages runs.
func TestOperating_install(t *testing.T) {
	snippet := regexp.MustCompile(`(?m)^ {4}(cat /usr/share/gothrottle/.*)$`).FindStringSubmatch(pages(t)["README.md"])
	require.NotNil(t, snippet)
	table := section(t, operatingPage, "## Install")
	assert.Contains(t, table, "`"+snippet[1]+"`")
	assert.Contains(t, table, "`apt-get install ./gothrottle_VERSION_amd64.deb`")
	packed, err := os.ReadFile("../deploy/packaging/README")
	if os.IsNotExist(err) {
		t.Skip("the packages are not in this tree")
	}
	require.NoError(t, err)
	assert.Contains(t, string(packed), "\n    "+snippet[1]+"\n    redis-cli GO.THROTTLE user:42 15 30 60\n")
}
