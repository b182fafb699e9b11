// Package storage takes the disk of a server away: it is full, read-only or slow, or the append-only file is torn. Then a
// server still holds all that it acknowledged, or refuses calls with its own errors.
package storage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gothrottle/commands/memory"
	servers "gothrottle/tests/server"
)

// disk is a file system of 4 MB in memory.
type disk struct {
	t      *testing.T
	folder string
	filler string
}

func newDisk(t *testing.T) *disk {
	d := &disk{t: t, folder: t.TempDir()}
	if err := syscall.Mount("gothrottle-test", d.folder, "tmpfs", 0, "size=4m"); err != nil {
		t.Fatalf("NO FILE SYSTEM OF ITS OWN, so no full disk: this test needs root: %v", err)
	}
	t.Cleanup(func() { d.try(syscall.Unmount(d.folder, syscall.MNT_DETACH)) })
	d.filler = filepath.Join(d.folder, "filler")
	return d
}

func (d *disk) try(err error) {
	if err != nil {
		d.t.Helper()
		d.t.Fatal(err)
	}
}

// fill leaves this many bytes.
func (d *disk) fill(left int64) {
	var room syscall.Statfs_t
	d.try(syscall.Statfs(d.folder, &room))
	d.try(os.WriteFile(d.filler, make([]byte, int64(room.Bavail)*room.Bsize-left), 0o600))
}

func (d *disk) free() { d.try(os.Remove(d.filler)) }

func (d *disk) readOnly(on bool) {
	flags := uintptr(syscall.MS_REMOUNT)
	if on {
		flags |= syscall.MS_RDONLY
	}
	d.try(syscall.Mount("", d.folder, "", flags, ""))
}

// do sends a command that must work.
func (d *disk) do(s *servers.Server, words ...any) string {
	v, err := s.Do(words...)
	d.try(err)
	text, _ := v.(string)
	return text
}

func (d *disk) await(s *servers.Server, line string) {
	d.try(servers.Await(line, func() bool { return strings.Contains(d.do(s, "INFO", "persistence"), line+"\r") }))
}

// refuses makes calls until the server says MISCONF. Then a call changes nothing, and a read-only one is answered.
func (d *disk) refuses(l *ledger, s *servers.Server) {
	d.t.Helper()
	if err := l.until(s); !strings.HasPrefix(err.Error(), "MISCONF") {
		d.t.Errorf("a call while nothing can be saved: %v", err)
	}
	d.do(s, "GO.THROTTLE_RO", "t0", 99, 1, "1h")
	l.check(s)
}

// again kills the server, starts it again and makes sure that nothing is lost.
func (d *disk) again(l *ledger, s *servers.Server, args ...string) {
	d.t.Helper()
	s.Kill()
	d.try(s.Restart(args...))
	l.check(s)
	l.must(s, 10)
}

const (
	always    = "--appendonly yes --appendfsync always"
	snapshots = "--save 3600 1000000" // none begins by itself, and a snapshot that fails matters
)

// faults has a row for each fault. Each begins with a server that has made 100 calls, on a disk of its own.
var faults = []struct {
	name string
	args string
	run  func(*disk, *ledger, *servers.Server)
}{
	{"full disk, append-only file, fsync always", always, func(d *disk, l *ledger, s *servers.Server) {
		d.fill(20_000)
		if err := l.until(s); servers.Await("the server ends", s.Exited) != nil {
			d.t.Fatalf("the server goes on after %v", err)
		}
		d.free()
		d.again(l, s)
	}},
	{"full disk, append-only file, fsync every second", "--appendonly yes --appendfsync everysec", func(d *disk, l *ledger, s *servers.Server) {
		d.fill(20_000)
		d.refuses(l, s)
		d.free()
		d.await(s, "aof_last_write_status:ok")
		l.must(s, 10)
		d.do(s, "CONFIG", "SET", "appendfsync", "always")
		l.must(s, 10) // all that was written before is on the disk now
		d.again(l, s)
	}},
	{"full disk, snapshot", snapshots, func(d *disk, l *ledger, s *servers.Server) {
		d.fill(0)
		d.do(s, "BGSAVE")
		d.await(s, "rdb_last_bgsave_status:err")
		d.refuses(l, s)
		d.free()
		d.do(s, "BGSAVE")
		d.await(s, "rdb_last_bgsave_status:ok")
		d.again(l, s)
	}},
	{"full disk, rewrite of the append-only file", always, func(d *disk, l *ledger, s *servers.Server) {
		d.do(s, "EVAL", "for i = 1, 20000 do redis.call('SET', 'other' .. i, i) end return 1", 0)
		d.fill(100_000)
		d.do(s, "BGREWRITEAOF")
		d.await(s, "aof_last_bgrewrite_status:err")
		l.must(s, 10)
		d.again(l, s)
		d.free()
		d.do(s, "BGREWRITEAOF")
		d.await(s, "aof_last_bgrewrite_status:ok")
		d.await(s, "aof_rewrite_in_progress:0")
		d.again(l, s)
	}},
	{"read-only disk, snapshot", snapshots, func(d *disk, l *ledger, s *servers.Server) {
		d.do(s, "SAVE")
		d.readOnly(true)
		d.do(s, "BGSAVE")
		d.await(s, "rdb_last_bgsave_status:err")
		d.refuses(l, s)
		d.again(l, s, "--save", "")
		d.readOnly(false)
		d.do(s, "SAVE")
		d.again(l, s)
	}},
	{"read-only disk, start", always, func(d *disk, l *ledger, s *servers.Server) {
		s.Kill()
		d.readOnly(true)
		if err := s.Restart(); err == nil {
			d.t.Error("the server starts though it cannot write the append-only file")
		}
		d.readOnly(false)
		d.again(l, s)
	}},
	{"slow fsync", always, func(d *disk, l *ledger, s *servers.Server) {
		began := time.Now()
		l.must(s, 10)
		if took := time.Since(began); took < 5*slowness {
			d.t.Errorf("10 calls took %v: the disk is not slow", took)
		}
		killed := make(chan struct{})
		time.AfterFunc(slowness*7/2, func() { s.Kill(); close(killed) })
		_ = l.until(s)
		<-killed
		d.again(l, s)
	}},
}

// slowness is how much longer fsync takes on a slow disk.
const slowness = 20 * time.Millisecond

// slow returns the command before a server's program that makes its fsync take so much longer. If synced isn't empty,
// testdata/slow.c writes into that file what is safe.
func slow(t *testing.T, longer time.Duration, synced string) []string {
	t.Helper()
	source, err := os.ReadFile("testdata/slow.c")
	if err != nil {
		t.Fatal(err)
	}
	library, err := servers.Library(t.TempDir(), "slow", source)
	if err != nil {
		t.Fatal(err)
	}
	return []string{"env", "LD_PRELOAD=" + library, fmt.Sprint("FSYNC_US=", longer.Microseconds()), "SYNCED=" + synced}
}

func TestStorage_faults(t *testing.T) {
	servers.Needed(t, "test-failover")
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			d, l := newDisk(t), newLedger(t)
			o := servers.Options{Folder: d.folder, Args: strings.Fields(f.args)}
			if f.name == "slow fsync" {
				o.Before = slow(t, slowness, "")
			}
			s := servers.New(t, o)
			l.must(s, 100)
			f.run(d, l, s)
		})
	}
}

// A machine loses power while the append-only file is written to the disk every second. Calls are lost that the server
// acknowledged within about a second and twice the time of an fsync. Here the server is killed, and its file cut to what
// was safe.
func TestStorage_powerLoss(t *testing.T) {
	servers.Needed(t, "test-failover")
	for _, takes := range []time.Duration{0, time.Second} {
		for try := range 3 {
			t.Run(fmt.Sprint("fsync takes ", takes, ", ", try), func(t *testing.T) {
				t.Parallel()
				lost := powerLoss(t, takes, 3*time.Second+time.Duration(try)*430*time.Millisecond)
				if t.Logf("lost: the last %v", lost); lost > 2*time.Second+2*takes {
					t.Errorf("lost: the last %v", lost)
				}
			})
		}
	}
}

// powerLoss makes calls for a while and takes the power away. It returns how long before the first lost call was
// acknowledged.
func powerLoss(t *testing.T, fsync, after time.Duration) time.Duration {
	type mark struct {
		at    time.Time
		holds map[string]*memory.Value
	}
	l, marks, list := newLedger(t), []mark{{}}, filepath.Join(t.TempDir(), "synced")
	s := servers.New(t, servers.Options{Args: strings.Fields("--appendonly yes --appendfsync everysec"), Before: slow(t, fsync, list)})
	for began := time.Now(); time.Since(began) < after; {
		l.must(s, 1)
		marks = append(marks, mark{time.Now(), l.holds})
	}
	s.Kill()
	killed := time.Now()
	file, safe := safeBytes(t, s.Folder, list)
	got, err := loadCut(l, s.Folder, file, safe)
	if err != nil {
		t.Fatal(err)
	}
	for i := len(marks) - 1; i > 0; i-- {
		if reflect.DeepEqual(marks[i].holds, got) {
			return killed.Sub(append(marks, mark{at: killed})[i+1].at)
		}
	}
	t.Fatalf("the file doesn't hold what any of %d calls left", len(marks)-1)
	return 0
}

// safeBytes returns the append-only file and how much of it was safe at last.
func safeBytes(t *testing.T, folder, list string) (file string, safe int) {
	files, _ := filepath.Glob(filepath.Join(folder, "appendonlydir", "*.incr.aof"))
	if len(files) != 1 {
		t.Fatal(files)
	}
	var info syscall.Stat_t
	text, err := os.ReadFile(list)
	if err = errors.Join(err, syscall.Stat(files[0], &info)); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var inode uint64
		var size int
		if _, err := fmt.Sscan(line, &inode, &size); err != nil {
			t.Fatal(err)
		}
		if inode == info.Ino {
			safe = size
		}
	}
	return filepath.Base(files[0]), safe
}

// Wherever the last 4 kB of the append-only file are torn, a server loads what some of the calls from the first one on left: each
// call as a whole. It loads without the module, so that nothing repairs the data.
func TestStorage_tornTail(t *testing.T) {
	servers.Needed(t, "test-failover")
	l := newLedger(t)
	s := servers.New(t, servers.Options{Args: strings.Fields(always)})
	files, _ := filepath.Glob(filepath.Join(s.Folder, "appendonlydir", "*.incr.aof"))
	if len(files) != 1 {
		t.Fatal(files)
	}
	type mark struct {
		size  int
		holds map[string]*memory.Value
	}
	var marks []mark
	for range 300 {
		l.must(s, 1)
		info, err := os.Stat(files[0])
		if err != nil {
			t.Fatal(err)
		}
		marks = append(marks, mark{int(info.Size()), l.holds})
	}
	s.Kill()
	size, step := marks[len(marks)-1].size, 1
	if testing.Short() {
		step = 41
	}
	cuts := make(chan int)
	go func() {
		defer close(cuts)
		for cut := size; cut >= size-4096; cut -= step {
			cuts <- cut
		}
	}()
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for cut := range cuts {
				got, err := loadCut(l, s.Folder, filepath.Base(files[0]), cut)
				if err != nil {
					t.Errorf("cut to %d bytes: %v", cut, err)
					continue
				}
				i := len(marks) - 1
				for marks[i].size > cut {
					i--
				}
				if l.compare(marks[i].holds, got); t.Failed() {
					t.Errorf("cut to %d bytes, in call %d", cut, i+1)
					return
				}
			}
		})
	}
	wait.Wait()
}

// loadCut returns what a server without the module loads of a folder whose append-only file is cut.
func loadCut(l *ledger, folder, file string, cut int) (map[string]*memory.Value, error) {
	torn, err := os.MkdirTemp("", "gothrottle-torn-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(torn)
	err = errors.Join(os.CopyFS(torn, os.DirFS(folder)), os.Truncate(filepath.Join(torn, "appendonlydir", file), int64(cut)))
	if err != nil {
		return nil, err
	}
	s, err := servers.Start(servers.Options{Bare: true, Folder: torn, Args: []string{"--appendonly", "yes"}})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return l.heldBy(s)
}
