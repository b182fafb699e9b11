// Command redis-software writes the zip that Redis Software takes as a user-defined module: the module and module.json.
package main

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"gothrottle/commands"
)

type command struct {
	Name     string   `json:"command_name"`
	Arity    int      `json:"command_arity"`
	FirstKey int      `json:"first_key"`
	LastKey  int      `json:"last_key"`
	Step     int      `json:"step"`
	Flags    []string `json:"flags"`
}

func main() {
	so, version, out := flag.String("module", "", "the module's file"), flag.String("version", "", "as in 1.2.3"), flag.String("out", "", "the zip")
	flag.Parse()
	if err := run(*so, *version, *out); err != nil {
		fmt.Fprintln(os.Stderr, "redis-software:", err)
		os.Exit(1)
	}
}

// run writes the same bytes for the same module and SOURCE_DATE_EPOCH.
func run(so, version, out string) error {
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	module, err := os.ReadFile(so)
	description, wrong := describe(version)
	file, failed := os.Create(out)
	if err := errors.Join(err, wrong, failed); err != nil {
		return err
	}
	z := zip.NewWriter(file)
	add := func(name string, mode os.FileMode, text []byte) error {
		head := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: time.Unix(seconds, 0).UTC()}
		head.SetMode(mode)
		w, err := z.CreateHeader(head)
		if err == nil {
			_, err = w.Write(text)
		}
		return err
	}
	return errors.Join(add("module.json", 0o644, description), add("gothrottle.so", 0o755, module), z.Close(), file.Close())
}

// describe returns module.json. Its fields are those that Redis Software asks for.
func describe(version string) ([]byte, error) {
	var major, minor, patch int
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch); err != nil {
		return nil, err
	}
	var all []command
	for _, row := range commands.Table {
		c := command{Name: row.Name, Arity: row.Arity, Flags: strings.Fields(row.Flags)}
		if !row.NoKey {
			c.FirstKey, c.LastKey, c.Step = 1, 1, 1
		}
		all = append(all, c)
	}
	return json.MarshalIndent(map[string]any{
		"module_name": "gothrottle", "display_name": "gothrottle", "description": "rate limiting", "license": "MIT",
		"version": major*10000 + minor*100 + patch, "semantic_version": version,
		"min_redis_version": "7.0", "command_line_args": "", "commands": all,
		// All state is in ordinary keys. Not crdb: it merges what masters did, and a limiter must not be merged.
		"capabilities": []string{"replica_of", "failover_migrate", "persistence_aof", "persistence_rdb", "clustering",
			"backup_restore", "reshard_rebalance", "eviction_expiry"},
	}, "", "  ")
}
