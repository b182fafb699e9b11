//go:build !js

package main

import (
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "the address, on this machine, at which the folder is served")
	flag.Parse()
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatalf("gothrottle: %v: choose another address, as in 'make playground LISTEN=127.0.0.1:8081'", err)
	}
	if !listener.Addr().(*net.TCPAddr).IP.IsLoopback() {
		log.Fatalf("gothrottle: %s is not on this machine: serve the folder by a web server of yours", *listen)
	}
	fmt.Printf("gothrottle: the playground is at http://%s (Ctrl-C ends it)\n", listener.Addr())
	log.Fatal(http.Serve(listener, http.FileServer(http.Dir(flag.Arg(0)))))
}
