// Command serve answers RESP on 127.0.0.1 from memory, for tests in other languages than Go: build/memory.sh starts it. The
// first line that it prints says where, in words that a shell can export:
//
//	ADDR=127.0.0.1:40001 SENTINEL=127.0.0.1:40003 CA=ca.pem
//
// It ends by a signal, or, if its standard input is a pipe, when that ends: so it never outlives the test that started it.
//
// A connection that sends DEBUG is from then on free of faults, and sets those of its server for all other ones:
//
//	DEBUG FAULT SILENT         nothing is read or answered
//	DEBUG FAULT MUTE           commands run, and their replies get lost
//	DEBUG FAULT SLOW 10ms      each command takes so long
//	DEBUG FAULT ERROR LOADING  the reply to each command; WRITES READONLY: to those that may write
//	DEBUG FAULT NONE           no more faults; they have the names of the fields of resp.Faults
//	DEBUG STALL 500ms          SILENT for this time
//	DEBUG CUT                  closes all connections
//	DEBUG CUTAFTER 1           closes one after the first limiter's command; CUTBEFORE 1: before it runs
//	DEBUG HALFOPEN             forgets all connections, but closes none
//	DEBUG RESTART              closes all connections and forgets the script
//	DEBUG ADVANCE 1h           sets the clock of all servers forward
//	DEBUG PROMOTE              lets a Sentinel make the copy the master
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"os"

	"gothrottle/commands/memory/resp"
)

func main() {
	log.SetFlags(0)
	port := flag.Int("port", 0, "the first `port`, which those of more servers follow; 0: free ones")
	bare := flag.Bool("script", false, "without the module, so that only the script runs")
	password := flag.String("password", "", "the default user's")
	ca := flag.String("tls", "", "encrypt connections, and write the certificate to trust into this `file`")
	cluster := flag.Bool("cluster", false, "a cluster of three")
	sentinel := flag.String("sentinel", "", "a master and its copy, which three Sentinels know by this `name`")
	flag.Parse()

	n := resp.NewNetwork(resp.Options{Bare: *bare, TLS: *ca != "", Password: *password, Debug: true})
	count := 1
	if *cluster {
		count = 3
	} else if *sentinel != "" {
		count = 5
	}
	listeners, addrs := listen(*port, count)
	line := "ADDR=" + addrs[0]
	if *cluster {
		n.NewCluster(addrs...)
	} else if master := n.Add(addrs[0]); *sentinel != "" {
		master.AddCopy(addrs[1], 0)
		n.NewSentinel(*sentinel, master, addrs[2:]...)
		line += " SENTINEL=" + addrs[2]
	}
	if *ca != "" {
		check(os.WriteFile(*ca, n.CA(), 0o600))
		line += " CA=" + *ca
	}
	for i, l := range listeners {
		go func() { check(n.Server(addrs[i]).Serve(l)) }()
	}
	fmt.Println(line)
	wait()
}

// listen opens sockets at consecutive ports, or at free ones.
func listen(port, count int) (listeners []net.Listener, addrs []string) {
	for i := range count {
		at := port
		if port > 0 {
			at += i
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", at))
		check(err)
		listeners, addrs = append(listeners, l), append(addrs, l.Addr().String())
	}
	return listeners, addrs
}

// wait returns when the standard input ends. If it isn't a pipe, a signal ends the process.
func wait() {
	if about, err := os.Stdin.Stat(); err != nil || about.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		select {}
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func check(err error) {
	if err != nil {
		log.Fatalf("gothrottle: %v", err)
	}
}
