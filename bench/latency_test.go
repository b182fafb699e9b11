package main

import (
	"net"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gothrottle/tests/server"
)

// callsPerSecond is far less than one connection can do, so that calls don't wait for each other.
const callsPerSecond = 1000

// BenchmarkLatency measures how long a call takes on one connection, with the server on one processor and the caller on the
// other. The caller is an open loop: a call is due at its instant, and its time counts from then.
func BenchmarkLatency(b *testing.B) {
	var second unix.CPUSet
	second.Set(1)
	each(b, rows("L"), func(b *testing.B, program string, r row) map[string]float64 {
		r.paced = 0
		s := open(b, program, r, 1000, server.Options{Before: []string{"taskset", "-c", "0"}})
		s.visit(s.call, s.keys, s.keys)
		runtime.LockOSThread() // and never unlocked: the thread ends with this row
		s.no(unix.SchedSetaffinity(0, &second))
		ask, took := s.caller(), []time.Duration{}
		for start, n := time.Now(), 0; n < int(4*slice.Seconds()*callsPerSecond); n++ {
			due := start.Add(time.Duration(n) * time.Second / callsPerSecond)
			for time.Now().Before(due) { // spins: it has a processor of its own
			}
			ask(n, due)
			took = append(took, time.Since(due))
		}
		slices.Sort(took)
		return map[string]float64{"p50-ns": float64(took[len(took)/2]), "p99-ns": float64(took[len(took)*99/100])}
	})
}

// caller returns what makes call n and waits for its reply, without Go's scheduler.
func (s *stage) caller() func(n int, now time.Time) {
	conn, err := net.Dial("tcp", s.Addr)
	s.no(err)
	file, err := conn.(*net.TCPConn).File()
	s.no(err)
	s.no(conn.Close())
	s.b.Cleanup(func() { file.Close() })
	socket, reply := int(file.Fd()), make([]byte, 4096)
	s.no(syscall.SetNonblock(socket, true))
	return func(n int, now time.Time) {
		words := strings.Fields(s.call)
		call := "*" + strconv.Itoa(len(words)) + "\r\n"
		for _, word := range words {
			word = fill(word, n*7919%s.keys, n, now)
			call += "$" + strconv.Itoa(len(word)) + "\r\n" + word + "\r\n"
		}
		_, err := syscall.Write(socket, []byte(call))
		s.no(err)
		got, err := syscall.Read(socket, reply)
		for err == syscall.EAGAIN { // spins, too
			got, err = syscall.Read(socket, reply)
		}
		s.no(err)
		if got == 0 || reply[0] == '-' {
			s.b.Fatalf("a call got %q", reply[:got])
		}
	}
}
