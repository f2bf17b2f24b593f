package worker

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/tdf-framework/tdf/internal/worker/process"
)

const (
	setupTail = 4 << 10     // how many bytes of setup.sh's last output an error contains
	setupRest = time.Second // how long to wait for output after setup.sh has ended
)

var errSetupUser = errors.New(
	"it would run as root, but programs run as another user ([worker] user); prepare the program by hand")

// setup runs a fetched program's ./setup.sh with the isolation of programs, and returns its last output
// (docs/programs.md, "setup.sh").
func (s *script) setup(ctx context.Context, dir string, env []string, lock *os.File) ([]byte, error) {
	if s.host.OtherUser() {
		return nil, errSetupUser
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	mark := dirVariable + filepath.Join(s.w.rounds(), "setup", filepath.Base(dir))
	p, err := s.host.Start(process.Command{
		Path: "./setup.sh", Dir: dir, Env: append(env, mark), Stdout: write, Stderr: write, Kept: lock, Mark: mark,
	})
	write.Close()
	if err != nil {
		return nil, err
	}
	printed := make(chan []byte, 1)
	go func() { printed <- lastOf(read) }()
	select {
	case <-p.Done():
	case <-ctx.Done():
		p.End(s.w.after(s.w.cfg.KillGrace), s.w.noGrace.Done())
		return nil, context.Cause(ctx)
	}
	_ = read.SetReadDeadline(time.Now().Add(setupRest)) // a process that escaped from the worker may keep the pipe open
	return <-printed, setupError(p.Ended())
}

func setupError(e process.Ended) error {
	switch {
	case e.Exit == "0":
		return nil
	case e.OutOfMemory != "":
		return errors.New(e.OutOfMemory)
	case len(e.Exit) <= 3:
		return errors.New("exit status " + e.Exit)
	}
	return errors.New(e.Exit)
}

// lastOf reads r to its end, and returns the last setupTail bytes.
func lastOf(r io.Reader) []byte {
	var last []byte
	chunk := make([]byte, setupTail)
	for {
		n, err := r.Read(chunk)
		last = append(last, chunk[:n]...)
		last = append(last[:0], last[max(0, len(last)-setupTail):]...)
		if err != nil {
			return last
		}
	}
}
