package main

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	servers "gothrottle/tests/server"
)

// A server is a server process and a connection to it.
type server struct {
	*servers.Server
	control *conn
	forget  func() bool
}

// launch starts a server and returns when it answers. cpus lists the CPUs that it may run
// on, in taskset's form. Without a module in the options it has none. The server ends when ctx ends.
func launch(ctx context.Context, binary, cpus string, o servers.Options) (*server, error) {
	o.Program, o.Before, o.Bare = binary, []string{"taskset", "-c", cpus}, o.Module == ""
	run, err := servers.Start(o)
	if err != nil {
		return nil, err
	}
	s := &server{Server: run, forget: context.AfterFunc(ctx, run.Kill)}
	conns, err := dial(s.Addr, 1)
	if err != nil {
		s.stop()
		return nil, err
	}
	s.control = conns[0]
	return s, nil
}

// stop ends the server and removes its folder.
func (s *server) stop() {
	s.forget()
	s.Close()
	if s.control != nil {
		s.control.Close()
	}
}

// info returns a section of INFO.
func (s *server) info(section string) (map[string]string, error) {
	text, err := s.control.ask("INFO", section)
	if err != nil {
		return nil, err
	}
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields, nil
}

// cpu returns the processor time that the server has used, in µs.
func (s *server) cpu() (float64, error) {
	fields, err := s.info("cpu")
	if err != nil {
		return 0, err
	}
	return cpuIn(fields, "")
}

// cpuIn adds up the processor time that the section cpu of INFO tells, in µs. The suffix
// chooses the fields: "" is all threads, and "_main_thread" is the main thread.
func cpuIn(fields map[string]string, suffix string) (float64, error) {
	user, err := strconv.ParseFloat(fields["used_cpu_user"+suffix], 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseFloat(fields["used_cpu_sys"+suffix], 64)
	return (user + system) * 1e6, err
}

// number returns a field of INFO as a number.
func (s *server) number(section, field string) (float64, error) {
	fields, err := s.info(section)
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(fields[field], 64)
}

// settledMemory waits until the server's tables have stopped growing and returns
// used_memory in bytes.
func (s *server) settledMemory() (float64, error) {
	last := -1.0
	for range 40 {
		now, err := s.number("memory", "used_memory")
		if err != nil {
			return 0, err
		}
		// The server's own memory changes by less than this.
		if d := now - last; d > -20_000 && d < 20_000 {
			return now, nil
		}
		last = now
		time.Sleep(250 * time.Millisecond)
	}
	return last, nil
}

// pinSelf ties this process to some CPUs, listed in taskset's form.
func pinSelf(cpus string) error {
	return exec.Command("taskset", "-a", "-c", "-p", cpus, strconv.Itoa(os.Getpid())).Run()
}
