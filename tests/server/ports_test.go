package server

import (
	"net"
	"strconv"
	"testing"
)

// Ports are different, none of those that the kernel gives to anybody, and not taken: each is listened on here.
func TestFreePort(t *testing.T) {
	seen := map[string]bool{}
	next.Store(count - 100) // the first port comes after the last
	for range 200 {
		port := FreePort()
		n, err := strconv.Atoi(port)
		if err != nil || n < 10_000 || n >= 32_000 || seen[port] {
			t.Fatalf("port %q, after %d others", port, len(seen))
		}
		seen[port] = true
		listener, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		next.Add(^uint32(0)) // the same port is tried again
	}
}
