package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
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
	rsync    *daemon      // nil: rsync is not installed here
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

func (s *shop) close() error {
	if s.http != nil {
		s.http.Close()
	}
	if s.rsync != nil {
		s.rsync.stop()
	}
	return os.RemoveAll(s.dir)
}
