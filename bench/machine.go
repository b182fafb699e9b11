package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// A machine is where the figures come from.
type machine struct {
	cpu, kernel, system, server, golang string
	cpus                                int
	virtual                             bool
	load                                string // of the last minute, before we began
	date                                time.Time
}

func (m machine) line() string {
	kind := "machine"
	if m.virtual {
		kind = "virtual machine"
	}
	return fmt.Sprintf("%s with %d x %s, %s, Linux %s, %s, %s", kind, m.cpus, m.cpu, m.system, m.kernel, m.server, m.golang)
}

// describe looks at the machine and asks a server for its version.
func (b *bench) describe() (machine, error) {
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
	s, err := launch(b.ctx, b.server, b.cpus)
	if err != nil {
		return m, err
	}
	defer s.stop()
	fields, err := s.info("server")
	if err != nil {
		return m, err
	}
	m.server = "Redis " + fields["redis_version"]
	if v := fields["valkey_version"]; v != "" {
		m.server = "Valkey " + v
	}
	return m, nil
}
