package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"time"
)

// A shop is where workers get programs from: a directory, and what serves it on loopback.
type shop struct {
	dir      string
	http     *http.Server
	url      string
	requests atomic.Int64 // to the http server, so far
	rsync    *exec.Cmd    // nil: rsync is not installed here
	module   string       // rsync://…/programs
}

func openShop(ctx context.Context) (*shop, error) {
	dir, err := os.MkdirTemp("", "tdf-sources-*")
	if err != nil {
		return nil, err
	}
	s := &shop{dir: dir}
	readable := os.Chmod(dir, 0o755) // workers may be other users' processes
	if err := errors.Join(readable, s.stock(), s.serve(), s.startRsync(ctx)); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// stock makes all files: an archive for each ending, and what is wrong.
func (s *shop) stock() error {
	files := map[string][]byte{"run.sh": script, "broken.tar.gz": []byte("this is no archive")}
	var err error
	for _, e := range endings {
		if files["program."+e], err = pack(e, "run.sh"); err != nil {
			return err
		}
	}
	if files["deep.zip"], err = pack("zip", "inside/run.sh"); err != nil {
		return err
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(s.dir, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (s *shop) serve() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.url = "http://" + l.Addr().String()
	files := http.FileServer(http.Dir(s.dir))
	s.http = &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		files.ServeHTTP(w, r)
	})}
	go s.http.Serve(l)
	return nil
}

// startRsync starts a daemon, if there is an rsync. Without one, its tasks fail and say so.
func (s *shop) startRsync(ctx context.Context) error {
	address, err := freeAddress()
	if err != nil {
		return err
	}
	s.module = "rsync://" + address + "/programs"
	path, err := exec.LookPath("rsync")
	if err != nil {
		return nil
	}
	_, port, _ := net.SplitHostPort(address)
	conf := "use chroot = no\n"
	if os.Geteuid() == 0 {
		conf += "uid = 0\ngid = 0\n"
	}
	conf += "[programs]\npath = " + s.dir + "\n"
	file := filepath.Join(s.dir, "rsyncd.conf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		return err
	}
	s.rsync = exec.Command(path, "--daemon", "--no-detach", "--address=127.0.0.1", "--port="+port,
		"--config="+file, "--log-file="+filepath.Join(s.dir, "rsyncd.log"))
	if err := s.rsync.Start(); err != nil {
		return err
	}
	return s.await(ctx, address)
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// await returns when somebody listens at the address.
func (s *shop) await(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		c, err := net.Dial("tcp", address)
		if err == nil {
			return c.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the rsync daemon does not listen: %w", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (s *shop) close() error {
	if s.http != nil {
		s.http.Close()
	}
	if s.rsync != nil && s.rsync.Process != nil {
		_ = s.rsync.Process.Kill()
		_ = s.rsync.Wait()
	}
	return os.RemoveAll(s.dir)
}
