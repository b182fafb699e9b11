//go:build !js

package main

import (
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
)

// main serves the folder of its second argument at the address of its first, on this machine.
func main() {
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		log.Fatalf("gothrottle: %v: choose another address, as in 'make playground LISTEN=127.0.0.1:8081'", err)
	}
	if !listener.Addr().(*net.TCPAddr).IP.IsLoopback() {
		log.Fatalf("gothrottle: %s is not on this machine: serve the folder by a web server of yours", os.Args[1])
	}
	fmt.Printf("gothrottle: the playground is at http://%s (Ctrl-C ends it)\n", listener.Addr())
	log.Fatal(http.Serve(listener, http.FileServer(http.Dir(os.Args[2]))))
}
