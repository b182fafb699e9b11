package main

import (
	"net"
	"os/exec"
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

// perCore is how many calls a second BenchmarkLatency sends: a tenth of what one connection can do, so that calls don't wait for
// each other.
const perCore = 1000

// BenchmarkLatency measures how long a call takes on one connection, with the server on one processor and the caller on the
// other. The caller is an open loop: a call is due at its instant, and its time counts from then.
func BenchmarkLatency(b *testing.B) {
	runtime.LockOSThread() // and never unlocked: the thread, which has one processor, ends with the benchmark
	var cpus unix.CPUSet
	cpus.Set(1)
	if err := unix.SchedSetaffinity(0, &cpus); err != nil {
		b.Fatal(err)
	}
	awake(b)
	each(b, rows("L"), func(b *testing.B, program string, r row) map[string]float64 {
		r.paced = 0
		s := open(b, program, r, 1000, server.Options{Before: []string{"taskset", "-c", "0"}})
		s.visit(s.call, s.keys, s.keys)
		ask, took := s.caller(), []time.Duration{}
		for start, n := time.Now(), 0; n < int(4*slice.Seconds()*perCore); n++ {
			due := start.Add(time.Duration(n) * time.Second / perCore)
			for time.Now().Before(due) { // spins: it has a processor of its own
			}
			ask(n, due)
			took = append(took, time.Since(due))
		}
		slices.Sort(took)
		return map[string]float64{"p50-ns": float64(took[len(took)/2]), "p99-ns": float64(took[len(took)*99/100])}
	})
}

// awake keeps both processors from going to sleep, by work that gives way to all other: waking one up takes a virtual machine
// longer than a call.
func awake(b *testing.B) {
	for range 2 {
		spin := exec.Command("chrt", "--idle", "0", "sh", "-c", "while :; do :; done")
		if err := spin.Start(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			spin.Process.Kill()
			spin.Wait()
		})
	}
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
		s.no(err)
		if got == 0 || reply[0] == '-' {
			s.b.Fatalf("a call got %q", reply[:got])
		}
	}
}
