// Program chaos makes random calls, foreign commands, clock steps and faults against a master and its replicas, or
// moves slots of a cluster while calls go on. It makes every call in memory as well (package commands/memory), and compares
// the replies, and after faults what all keys of all servers hold. Package world is for what both decide wrongly.
//
// A difference ends the program, which prints the command that runs the seed again.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

var (
	serverFlag  = flag.String("server", "", "the server's program, if it is another one than package server finds")
	seedFlag    = flag.Uint64("seed", 0, "the seed of the first run; 0: a random one")
	timeFlag    = flag.Duration("time", 150*time.Second, "when to end")
	stepsFlag   = flag.Int("steps", 250, "the steps of one run")
	clusterFlag = flag.Bool("cluster", false, "run a cluster whose slots move instead")
	onlyFlag    = flag.String("only", "", "a fault: the steps are this one and no other")
)

func main() {
	flag.Parse()
	folder, err := os.MkdirTemp("", "gothrottle-chaos-")
	if err != nil {
		fmt.Println("chaos:", err)
		os.Exit(1)
	}
	os.Setenv("TMPDIR", folder) // also of what package server makes
	interrupted, done := make(chan os.Signal, 1), make(chan error, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	go func() { done <- search() }()
	select {
	case err = <-done:
	case s := <-interrupted: // the servers end with this process
		err = errors.New(s.String())
	}
	os.RemoveAll(folder)
	if err != nil {
		fmt.Println("chaos:", err)
		os.Exit(1)
	}
}

// search runs one seed after the other until the time is over. It returns what ended it before.
func search() error {
	if len(named(*onlyFlag)) == 0 {
		return errors.New("-only names no fault of tests/chaos/faults.go")
	}
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()>>32 + 1
	}
	fmt.Printf("chaos: the first seed is %d\n", seed)
	tally := map[string]int{}
	ctx, cancel := context.WithTimeout(context.Background(), *timeFlag)
	defer cancel()
	defer func() {
		for _, name := range slices.Sorted(maps.Keys(tally)) {
			fmt.Printf("  %-28s %v\n", name, tally[name])
		}
	}()
	for ; ctx.Err() == nil; seed++ {
		one := perform
		if *clusterFlag {
			one = performCluster
		}
		if err := one(ctx, seed, tally); err != nil {
			fmt.Printf("chaos: to run it again: go run ./tests/chaos -server '%s' -seed %d -steps %d -only '%s' -cluster=%t\n", *serverFlag, seed, *stepsFlag,
				*onlyFlag, *clusterFlag)
			return fmt.Errorf("seed %d: %w", seed, err)
		}
	}
	fmt.Printf("chaos: no difference; the next seed is %d\n", seed)
	return nil
}
