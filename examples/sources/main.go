// Command sources runs the same program from a file, over http, and from Redis. See README.md.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/program"
	"github.com/tdf-framework/tdf/trial"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, "examples/sources/program", os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "sources:", err)
		os.Exit(1)
	}
}

// run runs the program in dir once from each source. It prints each source, and the output or the error.
func run(ctx context.Context, dir string, stdout, stderr io.Writer) error {
	tdf, err := trial.Start(ctx, 1, stderr) // Redis, a server and a worker in this process
	if err != nil {
		return err
	}
	defer tdf.Stop()
	m, err := manager.New(tdf.Manager())
	if err != nil {
		return err
	}
	defer m.Close()
	url, stop, err := serve(dir)
	if err != nil {
		return err
	}
	defer stop()
	path, err := filepath.Abs(filepath.Join(dir, "run.sh"))
	if err != nil {
		return err
	}
	stored, err := program.Push(ctx, m, dir) // packs the directory, and stores the archive in Redis
	if err != nil {
		return err
	}
	for _, d := range []struct{ program, source string }{
		{"from-file", "rsync:" + path}, // a path on the worker's machine
		{"from-http", url + "/run.sh"},
		{"from-redis", stored.Source}, // redis:SHA256
		{"missing", url + "/missing.zip"},
	} {
		if _, err := m.Open(ctx, manager.Definition{
			Program: d.program, Source: d.source,
			Input: "one 'and two'",
		}); err != nil {
			return err
		}
	}
	report := func(_ context.Context, t *manager.Finished) error {
		fmt.Fprintf(stdout, "%s\t%s\t%s\n", t.Program, t.Source, strings.TrimSpace(t.Output()+t.Stderr()))
		return nil
	}
	return m.Run(ctx, manager.Callbacks{AllGroups: true, Succeeded: report, Failed: report})
}

// serve serves the files of dir over http.
func serve(dir string) (url string, stop func() error, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	s := &http.Server{Handler: http.FileServer(http.Dir(dir))}
	go s.Serve(l)
	return "http://" + l.Addr().String(), s.Close, nil
}
