package redistest

import (
	_ "embed"
	native "encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// clockSource is the source of a library that gives a process another wall clock.
//
//go:embed testdata/clock.c
var clockSource []byte

// A Clock is the wall clock of servers that were started with its Option. It can be set while they run.
type Clock struct {
	t             testing.TB
	library, file string
}

// NewClock returns a clock that is right.
func NewClock(t testing.TB) *Clock {
	t.Helper()
	dir := t.TempDir()
	c := &Clock{t: t, library: filepath.Join(dir, "clock.so"), file: filepath.Join(dir, "offset")}
	source := filepath.Join(dir, "clock.c")
	c.write(source, clockSource)
	printed, err := exec.Command("gcc", "-shared", "-fPIC", "-O1", "-o", c.library, source).CombinedOutput()
	if err != nil {
		t.Fatalf("gcc: %v\n%s", err, printed)
	}
	c.Set(0)
	return c
}

func (c *Clock) write(path string, text []byte) {
	c.t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		c.t.Fatal(err)
	}
	defer file.Close()
	_, err = file.Write(text)
	if err != nil {
		c.t.Fatal(err)
	}
}

// Option gives a server the clock.
func (c *Clock) Option() Option {
	return func(s *settings) { s.env = append(s.env, "LD_PRELOAD="+c.library, "REDISTEST_CLOCK="+c.file) }
}

// Set makes the clock differ from the true time by d, which may be negative.
func (c *Clock) Set(d time.Duration) {
	c.t.Helper()
	c.write(c.file, native.NativeEndian.AppendUint64(nil, uint64(d.Microseconds())))
}
