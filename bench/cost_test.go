package main

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"gothrottle/tests/server"
)

// How much is measured. QUICK=1 is less exact.
var quick, keys, windowKeys, slice = os.Getenv("QUICK") == "1", 100_000, 800, 500 * time.Millisecond

func init() {
	if quick {
		keys, windowKeys, slice = 20_000, 200, 100*time.Millisecond
	}
}

var period = time.Second // how long a window lasts

// A stage is a fresh server with the one module that a row needs.
type stage struct {
	b testing.TB
	*server.Server
	*redis.Client
	row
	keys int
	rate float64 // ops per second, if the row is paced
}

// no ends the benchmark if there is an error.
func (s *stage) no(err error) {
	if s.b.Helper(); err != nil {
		s.b.Fatal(err)
	}
}

// open starts a server for a row, with so many keys if the row does not say it.
func open(b testing.TB, program string, r row, keys int, o server.Options) *stage {
	lua := strings.HasSuffix(r.load, ".lua")
	o.Program, o.Module, o.Bare = program, r.load, lua || r.load == "" && !strings.Contains(r.call, "GO.")
	s := &stage{b: b, Server: server.New(b, o), keys: cmp.Or(r.keys, keys)}
	s.Client = s.Server.Client(func(o *redis.Options) { o.PoolSize, o.DialTimeout = 60, server.Patience })
	b.Cleanup(func() { s.Client.Close() })
	sha := ""
	if lua {
		script, err := os.ReadFile(r.load)
		s.no(err)
		sha, err = s.ScriptLoad(ctx, string(script)).Result()
		s.no(err)
	}
	if name, value, found := strings.Cut(r.config, " "); found {
		s.no(s.ConfigSet(ctx, name, value).Err())
	}
	fixed := strings.NewReplacer("{sha}", sha, "{period}", fmt.Sprint(period.Milliseconds()))
	r.call, r.full, r.times = fixed.Replace(r.call), fixed.Replace(cmp.Or(r.full, r.call)), cmp.Or(r.times, 1)
	if s.row = r; r.paced > 0 {
		s.keys = windowKeys * 95 / r.paced
		s.rate = float64(s.keys*r.paced) / period.Seconds()
	}
	return s
}

// info returns the sum of fields of a section of INFO.
func (s *stage) info(section string, fields ...string) (sum float64) {
	info, err := s.Info(ctx, section).Result()
	s.no(err)
	for _, field := range fields {
		n, err := strconv.ParseFloat(server.Field(info, field), 64)
		s.no(err)
		sum += n
	}
	return sum
}

// cpu returns the processor time that all threads of the server have used, in ns.
func (s *stage) cpu() float64 { return 1e9 * s.info("cpu", "used_cpu_user", "used_cpu_sys") }

// warm makes the state of the long run: all keys exist, and windows are as full as they get. It returns the calls per second.
func (s *stage) warm(before ...string) float64 {
	if s.paced > 0 {
		s.play(period * 13 / 10)
		return s.rate
	}
	s.visit(s.call, s.keys, s.keys)
	if s.row.warm != "" {
		s.visit(s.row.warm, s.keys, s.keys)
	}
	return s.hammer(50_000, before...)
}

// spend sends calls for about a time, and returns how many.
func (s *stage) spend(rate float64, d time.Duration, before ...string) (calls int) {
	if s.paced > 0 {
		return s.play(d)
	}
	calls = max(int(rate*d.Seconds()), 1000)
	s.hammer(calls, before...)
	return calls
}

// cost returns the server's processor time per op in ns. If windows are not as full as they should be, because the machine was
// busy, they are measured again.
func (s *stage) cost(before ...string) (ns float64) {
	for try := 1; ; try++ {
		rate := s.warm(before...)
		start := s.cpu()
		calls := s.spend(rate, slice, before...)
		ns = (s.cpu() - start) / float64(calls)
		err := s.probe()
		if err == nil {
			return ns * float64(s.times)
		}
		if s.paced == 0 || try == 5 {
			s.b.Fatal(err)
		}
	}
}

// probe asks once more, and returns an error if the answer is not what the row expects. A quick run, which tests use on busy
// machines, need not fill windows, and may fill them too much: calls that are late come all together.
func (s *stage) probe() error {
	replies, err := send(s, s.call, 0, 1, s.keys, time.Now())
	if err != nil || s.verdict == anything {
		return err
	}
	reply, err := replies[0].(*redis.Cmd).Slice()
	if err == nil && s.paced > 0 && quick {
		return nil
	}
	if err != nil || reply[0] != int64(s.verdict) || s.paced > 0 && 10*reply[2].(int64) > reply[1].(int64) {
		return fmt.Errorf("%v (%v): the first number should be %d, and 90 %% of a window in use", replies[0], err, s.verdict)
	}
	return nil
}

// serverName returns the name and the version of a program, such as Redis 8.6.3.
func serverName(b testing.TB, program string) string {
	version, err := server.Version(program)
	if err != nil {
		b.Fatal(err)
	}
	return strings.Replace(version, " server v=", " ", 1)
}

// each runs f for each row, and each row on all servers, one after the other: so a disturbance of the machine meets them alike.
// f returns figures by their units.
func each(b *testing.B, rows []row, f func(b *testing.B, program string, row row) map[string]float64) {
	for _, row := range rows {
		for program := range strings.FieldsSeq(os.Getenv("SERVERS")) {
			b.Run(row.String()+"/server="+serverName(b, program), func(b *testing.B) {
				b.ReportMetric(0, "ns/op") // is not printed
				for unit, n := range f(b, program, row) {
					b.ReportMetric(n, unit)
				}
			})
		}
	}
}

// BenchmarkCPU measures processor time, pipelined.
func BenchmarkCPU(b *testing.B) {
	each(b, rows(""), func(b *testing.B, program string, r row) map[string]float64 {
		return map[string]float64{"cpu-ns/op": open(b, program, r, keys, server.Options{}).cost()}
	})
}

// BenchmarkOneCPU compares a server on one processor with one that is free to move. The load comes from the other processor.
func BenchmarkOneCPU(b *testing.B) {
	each(b, rows("P"), func(b *testing.B, program string, r row) map[string]float64 {
		free := open(b, program, r, keys, server.Options{}).cost("taskset", "-c", "1")
		tied := open(b, program, r, keys, server.Options{Before: []string{"taskset", "-c", "0"}}).cost("taskset", "-c", "1")
		return map[string]float64{"tied/free": tied / free}
	})
}

// BenchmarkMemory measures the growth of used_memory per key, of keys after one call or of full windows.
func BenchmarkMemory(b *testing.B) {
	each(b, rows("M"), func(b *testing.B, program string, r row) map[string]float64 {
		s := open(b, program, r, 125_000, server.Options{})
		before, pause := s.info("memory", "used_memory"), 5*time.Millisecond // windows drain
		if r.paced > 0 {
			s.warm()
			s.no(s.probe())
		} else {
			s.visit(s.full, s.keys, s.keys)
			pause = time.Second // the server's tables go on growing
		}
		s.Client.Close() // connections have buffers
		s.Client = s.Server.Client()
		time.Sleep(pause)
		return map[string]float64{"B/key": (s.info("memory", "used_memory") - before) / float64(s.keys)}
	})
}

// BenchmarkFile measures bytes of the append-only file per op. Few keys are called often, as in the long run.
func BenchmarkFile(b *testing.B) {
	each(b, rows("A"), func(b *testing.B, program string, r row) map[string]float64 {
		s := open(b, program, r, 1000, server.Options{Args: []string{"--appendonly", "yes", "--appendfsync", "no", "--auto-aof-rewrite-percentage", "0"}})
		rate := s.warm()
		before := s.info("persistence", "aof_current_size")
		calls := s.spend(rate, slice/2)
		s.no(s.probe())
		return map[string]float64{"file-B/op": (s.info("persistence", "aof_current_size") - before) / float64(calls)}
	})
}
