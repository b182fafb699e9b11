package server

import (
	_ "embed"
	"encoding/binary"
	"os"
	"path/filepath"
	"time"
)

//go:embed testdata/clock.c
var clockSource []byte

// Clock is the wall clock of processes, and the monotonic clock of their modules. Write makes the servers see its fields.
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
	library, source := filepath.Join(folder, "clock.so"), filepath.Join(folder, "clock.c")
	if _, err := os.Stat(library); err != nil {
		if err := os.WriteFile(source, clockSource, 0o600); err != nil {
			return nil, err
		}
		if err := CompileC(source, library); err != nil {
			return nil, err
		}
	}
	file, err := os.CreateTemp(folder, "clock")
	if err != nil {
		return nil, err
	}
	c := &Clock{file: file, env: []string{"LD_PRELOAD=" + library, "GOTHROTTLE_CLOCK=" + file.Name()}}
	return c, c.Write()
}

// Write makes the servers see the fields.
func (c *Clock) Write() error {
	frozen := uint64(0)
	if c.Frozen {
		frozen = 1
	}
	b := binary.NativeEndian.AppendUint64(nil, frozen)
	b = binary.NativeEndian.AppendUint64(b, uint64(c.Wall))
	_, err := c.file.WriteAt(binary.NativeEndian.AppendUint64(b, uint64(c.Mono)), 0)
	return err
}

// Shift makes the clock show the real time plus d.
func (c *Clock) Shift(d time.Duration) error {
	c.Frozen, c.Wall = false, d.Microseconds()
	return c.Write()
}

// Freeze stops the clock at a time.
func (c *Clock) Freeze(at time.Time) error {
	c.Frozen, c.Wall = true, at.UnixMicro()
	return c.Write()
}

// Close closes the clock's file. Servers that have the clock may go on.
func (c *Clock) Close() { c.file.Close() }
