package main

import (
	"encoding/json"
	"errors"
	"os"

	"gothrottle/tests/world"
)

type words = world.Words

// step is one part of a schedule. It needs nothing of the steps before it, so steps can be left out.
type step struct {
	Do    string  `json:"do"` // calls, foreign, clock, or the name of a fault
	Conn  int     `json:"conn,omitempty"`
	DB    int     `json:"db,omitempty"`
	Via   string  `json:"via,omitempty"`   // how calls are sent: plain, multi, eval, fcall, replica, parallel
	N     int64   `json:"n,omitempty"`     // of calls: 1 if keys in doubt are deleted first, 2 if also those that the exact models do not know; of a clock: µs that the wall clock is moved
	Mono  int64   `json:"mono,omitempty"`  // of a clock: µs that pass
	Text  string  `json:"text,omitempty"`  // an argument of a fault
	Calls []words `json:"calls,omitempty"` // of calls, and of faults in the midst of calls
}

// schedule is what a run does.
type schedule struct {
	Seed    uint64   `json:"seed"`
	Options []string `json:"options"` // more arguments of the servers
	Steps   []step   `json:"steps"`
}

// readSchedule reads what write wrote.
func readSchedule(file string) (s schedule, err error) {
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	return s, err
}

// write writes a schedule, with a line for each call.
func (s *schedule) write(file string) error {
	text, err := json.MarshalIndent(s, "", " ")
	return errors.Join(err, os.WriteFile(file, append(text, '\n'), 0o644))
}
