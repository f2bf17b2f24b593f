package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// A daemon is an rsync that serves a directory on loopback.
type daemon struct {
	process *exec.Cmd
	ended   chan struct{} // closed when it has
}

func (d *daemon) stop() {
	_ = d.process.Process.Kill()
	<-d.ended
}

// mostPorts is how many are tried: somebody may take one before the daemon does.
const mostPorts = 5

// startRsync starts a daemon, if there is an rsync. Without one, its tasks fail and say so.
func (s *shop) startRsync(ctx context.Context) error {
	path, lacking := exec.LookPath("rsync")
	for tries := 1; ; tries++ {
		address, err := freeAddress()
		if err != nil {
			return err
		}
		s.module = "rsync://" + address + "/programs"
		if lacking != nil {
			return nil
		}
		if s.rsync, err = startDaemon(path, s.dir, address); err != nil {
			return err
		}
		if err = s.rsync.await(ctx, address); !errors.Is(err, errEnded) || tries == mostPorts {
			return err
		}
	}
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

func startDaemon(path, dir, address string) (*daemon, error) {
	_, port, _ := net.SplitHostPort(address)
	conf := "use chroot = no\n"
	if os.Geteuid() == 0 {
		conf += "uid = 0\ngid = 0\n"
	}
	conf += "[programs]\npath = " + dir + "\n"
	file := filepath.Join(dir, "rsyncd.conf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		return nil, err
	}
	d := &daemon{ended: make(chan struct{})}
	d.process = exec.Command(path, "--daemon", "--no-detach", "--address=127.0.0.1", "--port="+port,
		"--config="+file, "--log-file="+filepath.Join(dir, "rsyncd.log"))
	if err := d.process.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = d.process.Wait()
		close(d.ended)
	}()
	return d, nil
}

var errEnded = errors.New("the rsync daemon has ended")

// await returns when the daemon listens at the address.
func (d *daemon) await(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for !greets(address) {
		select {
		case <-d.ended:
			return errEnded
		case <-ctx.Done():
			return fmt.Errorf("the rsync daemon does not listen: %w", ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

// greets says whether an rsync daemon listens there, and nobody else.
func greets(address string) bool {
	const greeting = "@RSYNCD:"
	c, err := net.Dial("tcp", address)
	if err != nil {
		return false
	}
	defer c.Close()
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	text := make([]byte, len(greeting))
	_, err = io.ReadFull(c, text)
	return err == nil && string(text) == greeting
}
