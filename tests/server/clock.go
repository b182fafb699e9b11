package server

import (
	"context"
	_ "embed"
	"encoding/binary"
	"os"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
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
	library, err := Library(folder, "clock", clockSource)
	if err != nil {
		return nil, err
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
	words := [3]int64{0, c.Wall, c.Mono}
	if c.Frozen {
		words[0] = 1
	}
	b, err := binary.Append(nil, binary.NativeEndian, words)
	if err == nil {
		_, err = c.file.WriteAt(b, 0)
	}
	return err
}

// Close closes the clock's file. Servers that have the clock may go on.
func (c *Clock) Close() { c.file.Close() }

const century = 3_153_600_000 // seconds: the longest period

// AskClock adds three commands that read the clock of a server's module, by a quota at the key that begins now. ReadClock
// reads the reply to the last one.
func AskClock(p redis.Pipeliner, key string) *redis.Cmd {
	ctx := context.Background()
	p.Do(ctx, "DEL", key)
	p.Do(ctx, "GO.QUOTA", key, 1, century)
	return p.Do(ctx, "GET", key)
}

// ReadClock returns the time that the module's clock showed, in µs since the Unix epoch, 0 if the reply is another one.
func ReadClock(quota string) int64 {
	_, end, _ := strings.Cut(quota, "@")
	n, err := strconv.ParseInt(end, 10, 64)
	if err != nil {
		return 0
	}
	return n/1000 - century*1_000_000
}
