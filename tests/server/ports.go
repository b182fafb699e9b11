package server

import (
	"fmt"
	"net"
	"os"
	"sync/atomic"
)

// Ports are taken from first on. The kernel gives ports from 32768 on to connections and to anyone asking for any port. So
// neither can take a port between FreePort and the start of the server, nor while a server is unavailable.
const (
	first = 10_000
	count = 22_000
)

var next atomic.Uint32

// Processes begin far from each other, so that two of them rarely try the same port at the same time.
func init() { next.Store(uint32(os.Getpid()%count) * 7919 % count) }

// FreePort returns a port of 127.0.0.1 that nothing listens on. It returns each port once, until all have been tried. It
// panics if none is free.
func FreePort() string {
	for range count {
		port := fmt.Sprint(first + next.Add(1)%count)
		if listener, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			_ = listener.Close()
			return port
		}
	}
	panic("server: no port is free")
}
