// Command mapreduce counts the words of text files. A map task counts the words of one file, and reduce tasks add the
// counts of several tasks. See README.md.
package main

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/program"
	"github.com/tdf-framework/tdf/trial"
)

//go:embed run.sh
var script []byte

const usage = `usage: mapreduce [-config FILE.cfg [-run NAME]] FILE…

Count the words of up to 250 text files. Without -config, mapreduce runs Redis, a server and workers in its own process.

`

// maxFiles is how many tasks one step can surely archive: see succeeded.
const maxFiles = 250

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// run runs the command. It returns the exit status: 0 after success, 1 if the count failed, and 2 for invalid
// arguments.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("mapreduce", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() { fmt.Fprint(stderr, usage); flags.PrintDefaults() }
	file := flags.String("config", "",
		"the manager's `FILE.cfg`; a server and workers must use the same Redis and namespace")
	name := flags.String("run", rand.Text(),
		"`NAME` of the run; use the name of an interrupted run to continue that run")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	files, err := absolute(flags.Args())
	if err != nil {
		fmt.Fprintf(stderr, "mapreduce: %v\n", err)
		return 2
	}
	counts, err := count(ctx, *file, *name, files, stderr)
	if err != nil {
		fmt.Fprintf(stderr, "mapreduce: %v\n", err)
		return 1
	}
	io.WriteString(stdout, counts)
	return 0
}

// absolute returns the absolute paths of the files, because workers have other working directories.
func absolute(files []string) ([]string, error) {
	if len(files) == 0 || len(files) > maxFiles {
		return nil, fmt.Errorf("got %d files: want 1 to %d", len(files), maxFiles)
	}
	for i, file := range files {
		path, err := filepath.Abs(file)
		if err != nil {
			return nil, fmt.Errorf("find file: %w", err)
		}
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("find file: %w", err)
		}
		files[i] = path
	}
	return files, nil
}

// count counts the words. With a configuration, it uses the Redis of the configuration. Without one, it runs all
// components in its own process.
func count(ctx context.Context, file, name string, files []string, stderr io.Writer) (string, error) {
	if file == "" {
		all, err := trial.Start(ctx, 2, stderr)
		if err != nil {
			return "", err
		}
		defer all.Stop()
		return countWith(ctx, all.Manager(), name, files, stderr)
	}
	o, err := manager.LoadOptions(file)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(stderr, "run %s; after an interruption, continue it with -run %s\n", name, name)
	return countWith(ctx, o, name, files, stderr)
}

func countWith(ctx context.Context, o manager.Options, name string, files []string, stderr io.Writer) (string, error) {
	o.Progress = stderr
	m, err := manager.New(o)
	if err != nil {
		return "", err
	}
	defer m.Close()
	packed, err := archive()
	if err != nil {
		return "", err
	}
	source, err := program.Put(ctx, m, packed)
	if err != nil {
		return "", err
	}
	w := wordCount{m: m, source: source, group: "mapreduce-" + name, files: files}
	return w.run(ctx)
}

// archive packs run.sh, so that Redis can store it.
func archive() ([]byte, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	if err := w.WriteHeader(&tar.Header{Name: "run.sh", Mode: 0o755, Size: int64(len(script))}); err != nil {
		return nil, err
	}
	if _, err := w.Write(script); err != nil {
		return nil, err
	}
	err := w.Close()
	return buf.Bytes(), err
}
