// Program chaos runs random schedules of calls, foreign commands, clock steps and faults against
// servers with the module. It makes every call in memory as well (package commands/memory), and compares
// the replies, and after faults what all keys of a master and its replicas hold. At keys whose history is known, the
// reply must also be that of the exact models (package world).
//
// A difference ends the program. The program then makes the schedule shorter, writes it to a file,
// and prints the command that runs it again.
package main

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

var (
	serverFlag  = flag.String("server", "", "the server's program, if it is another one than package server finds")
	seedFlag    = flag.Uint64("seed", 0, "the seed of the first run; 0: a random one")
	timeFlag    = flag.Duration("time", 150*time.Second, "when to end")
	stepsFlag   = flag.Int("steps", 250, "the steps of one run")
	replayFlag  = flag.String("replay", "", "a file with a schedule, to run it instead")
	shrinkFlag  = flag.Duration("shrink", 90*time.Second, "how long to make a failing schedule shorter")
	clusterFlag = flag.Bool("cluster", false, "run a cluster whose slots move instead")
	manyFlag    = flag.Bool("many", false, "run many clients at once instead")
	onlyFlag    = flag.String("only", "", "a fault: the steps are this one and no other")
	verboseFlag = flag.Bool("v", false, "print each step and how long it took")
)

func main() {
	flag.Parse()
	if *onlyFlag != "" && (find(*onlyFlag) == nil || find(*onlyFlag).weight == 0) {
		fmt.Fprintln(os.Stderr, "chaos: -only names no fault of tests/chaos/faults.go")
		os.Exit(2)
	}
	l, err := newLab()
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(2)
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, os.Interrupt, syscall.SIGTERM)
	go func() { // the servers end with this process
		<-ended
		os.RemoveAll(l.folder)
		os.Exit(1)
	}()
	ok := false
	if *replayFlag != "" {
		ok = replay(l, *replayFlag)
	} else {
		ok = search(l)
	}
	os.RemoveAll(l.folder)
	if !ok {
		os.Exit(1)
	}
}

func replay(l *lab, file string) bool {
	s, err := readSchedule(file)
	if err == nil {
		err = perform(l, &s, newStats(l), time.Now().Add(time.Hour))
	}
	if err != nil {
		fmt.Println("chaos:", err)
		return false
	}
	fmt.Println("chaos: no difference")
	return true
}

// mostNotBegun bounds how many runs may not begin, because servers take too long to start or to find each other.
const mostNotBegun = 5

// search runs one seed after the other until the time is over.
func search(l *lab) bool {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()>>32 + 1
	}
	fmt.Printf("chaos: the first seed is %d\n", seed)
	st, end := newStats(l), time.Now().Add(*timeFlag)
	st.shown = time.Now()
	for ; time.Now().Before(end); seed++ {
		s := schedule{Seed: seed}
		var err error
		switch {
		case *clusterFlag:
			err = performCluster(l, seed, st, end)
		case *manyFlag:
			err = performMany(l, seed, st, end)
		default:
			s = generate(seed, *stepsFlag, *onlyFlag)
			err = perform(l, &s, st, end)
		}
		if errors.Is(err, errNotBegun) && st.tally[numNotBegun] < mostNotBegun {
			st.tally[numNotBegun]++
			fmt.Printf("chaos: seed %d: %v\n", seed, err)
			continue
		}
		if err != nil {
			st.tally["differences"]++
			fmt.Printf("%schaos: seed %d: %v\n", st.table(), seed, err)
			report(l, s, err)
			return false
		}
	}
	fmt.Printf("chaos: no difference; the next seed is %d\n%s", seed, st.table())
	return true
}

// report makes a failing schedule shorter and writes it. The steps of a cluster and of many clients are chosen one by one,
// so they cannot be left out.
func report(l *lab, s schedule, err error) {
	if *clusterFlag || *manyFlag {
		fmt.Printf("chaos: to run it again: go run ./tests/chaos -cluster=%v -many=%v -server %s -steps %d -seed %d\n", *clusterFlag, *manyFlag, l.server, *stepsFlag, s.Seed)
		return
	}
	fmt.Printf("chaos: the schedule has %d steps; it is being made shorter for at most %v\n", len(s.Steps), *shrinkFlag)
	end := time.Now().Add(*shrinkFlag)
	last := err
	s = shrink(s, stepOf(err), func(s *schedule) bool {
		if time.Now().After(end) {
			return false
		}
		err := perform(l, s, newStats(l), end)
		if stepOf(err) >= 0 {
			last = err
		}
		return stepOf(err) >= 0
	})
	const folder = "build/out/chaos"
	file := filepath.Join(folder, fmt.Sprintf("seed-%d.json", s.Seed))
	if err := errors.Join(os.MkdirAll(folder, 0o755), s.write(file)); err != nil {
		fmt.Println("chaos:", err)
		return
	}
	fmt.Printf("chaos: %d steps are left: %v\n", len(s.Steps), last)
	fmt.Printf("chaos: to run them again: go run ./tests/chaos -server %s -replay %s\n", l.server, file)
}
