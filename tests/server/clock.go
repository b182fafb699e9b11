package server

import (
	_ "embed"
	"encoding/binary"
	"os"
	"testing"
)

//go:embed testdata/clock.c
var clockSource []byte

// Clock is the wall clock of processes, and the monotonic clock of their modules. Set makes the servers see its fields.
type Clock struct {
	Frozen bool
	Wall   int64 // µs: the time of a clock that is frozen, else what is added to the real time
	Mono   int64 // µs; 0 is the real monotonic clock
	file   *os.File
	env    []string
}

// NewClock returns a clock that shows the real time. Its files are in the folder, which must stay. The caller closes the
// clock. Clocks of one folder share a library.
func NewClock(folder string) (*Clock, error) {
	library, err := os.Getenv("GOTHROTTLE_CLOCK_LIBRARY"), error(nil)
	if library == "" {
		library, err = Library(folder, "clock", clockSource)
	}
	if err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(folder, "clock")
	if err != nil {
		return nil, err
	}
	c := &Clock{file: file, env: []string{"LD_PRELOAD=" + library, "GOTHROTTLE_CLOCK=" + file.Name()}}
	c.Set(0)
	return c, nil
}

// FrozenClock returns a clock that stays at a time, in µs, and is closed with the test. On arm64 that of Valkey 9.1 goes on.
func FrozenClock(tb testing.TB, wall int64) *Clock {
	tb.Helper()
	c, err := NewClock(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Close)
	c.Frozen = true
	c.Set(wall)
	return c
}

// Set sets the field Wall and makes the servers see all fields. It panics if it cannot.
func (c *Clock) Set(wall int64) {
	c.Wall = wall
	words := [3]int64{0, c.Wall, c.Mono}
	if c.Frozen {
		words[0] = 1
	}
	b, err := binary.Append(nil, binary.NativeEndian, words)
	if err == nil {
		_, err = c.file.WriteAt(b, 0)
	}
	if err != nil {
		panic(err)
	}
}

// Close closes the clock's file. Servers that have the clock may go on.
func (c *Clock) Close() { c.file.Close() }
