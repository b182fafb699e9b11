package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	servers "gothrottle/tests/server"
)

// A machine describes where the figures come from.
type machine struct {
	cpu, kernel, system, golang string
	cpus                        int
	virtual                     bool
	load                        string // load average of the minute before the run
	date                        time.Time
}

func (m machine) line() string {
	kind := "machine"
	if m.virtual {
		kind = "virtual machine"
	}
	return fmt.Sprintf("%s with %d x %s, %s, Linux %s, %s", kind, m.cpus, m.cpu, m.system, m.kernel, m.golang)
}

// describe describes this machine.
func describe() (machine, error) {
	m := machine{cpus: runtime.NumCPU(), golang: runtime.Version(), date: time.Now(), cpu: "unknown processor", system: "Linux"}
	read := func(name string) string {
		text, _ := os.ReadFile(name)
		return strings.TrimSpace(string(text))
	}
	cpuinfo := read("/proc/cpuinfo")
	if _, rest, ok := strings.Cut(cpuinfo, "model name"); ok {
		line, _, _ := strings.Cut(rest, "\n")
		m.cpu = strings.Trim(line, " \t:")
	}
	m.virtual = strings.Contains(cpuinfo, " hypervisor")
	m.kernel = read("/proc/sys/kernel/osrelease")
	m.load, _, _ = strings.Cut(read("/proc/loadavg"), " ")
	if _, rest, ok := strings.Cut(read("/etc/os-release"), `PRETTY_NAME="`); ok {
		m.system, _, _ = strings.Cut(rest, `"`)
	}
	if _, err := exec.LookPath("taskset"); err != nil {
		return m, fmt.Errorf("%w: please install util-linux", err)
	}
	return m, nil
}

// A product is a server program.
type product struct {
	file string
	name string // name and version, such as Redis 8.6.3
}

// products asks the servers of the options for their names and versions.
func (b *bench) products() ([]product, error) {
	var list []product
	for _, file := range strings.Split(b.servers, ",") {
		s, err := launch(b.ctx, file, b.cpus, servers.Options{})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		info, err := s.info("server")
		s.stop()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		list = append(list, product{file, productName(info)})
	}
	return list, nil
}

// productName reads the name and the version from a server's INFO. Valkey tells a
// redis_version, too.
func productName(info map[string]string) string {
	if v := info["valkey_version"]; v != "" {
		return "Valkey " + v
	}
	return "Redis " + info["redis_version"]
}
