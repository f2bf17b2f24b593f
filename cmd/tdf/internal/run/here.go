package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/command"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/local"
	"github.com/tdf-framework/tdf/program"
	"github.com/tdf-framework/tdf/sweep"
)

// here is what runs on this machine for a call: nothing, a worker, or a Redis, a server and a worker.
type here struct {
	// The tasks need these tags, which only the worker of this call offers. In a Redis of the call, they need none.
	tags      []string
	temporary bool      // the Redis ends with the call
	slots     int       // 0 if other workers run the tasks
	outputs   [2]string // names of files with stdout and stderr that Redis does not hold whole; "" if they are elsewhere

	tdf   *local.TDF
	redis *local.Redis
}

// killGrace is how long commands may run after SIGTERM, if the call ends early.
const killGrace = 2 * time.Second

// startWorker starts the worker that runs the commands on this machine, and a server.
func (h *here) startWorker(ctx context.Context, c *campaign, tool config.Tool) error {
	if c.elsewhere() {
		return nil
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%s-run-%s", host, c.id)
	if !h.temporary {
		h.tags = []string{name}
	}
	cfg := local.Config{
		Server: tool.Server, Worker: tool.Worker, Name: name, Workers: []string{name}, Version: command.Version(),
		Log: c.a.Log, EndOnFullDisk: true,
	}
	w := &cfg.Worker
	w.Redis, w.Namespace, w.API, w.Namespaces = tool.Manager.Redis, tool.Manager.Namespace, config.API{}, nil
	w.Directory, w.Concurrency, w.KillGrace, w.Grace = "", c.jobs.n, killGrace, 0
	w.SleepAfterFailure = 0
	w.TimeLimit, w.IdleTimeout = 0, 0
	w.Queues, w.Tags, w.Group = nil, h.tags, ""
	if h.tags != nil { // it serves no other tasks
		w.Group = c.campaignName(c.programName())
	}
	err = c.offerResources(w)
	if err != nil {
		return err
	}
	w.Env = nil
	for _, variable := range c.a.Env {
		variable, _, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(variable, "TDF_") {
			w.Env = append(w.Env, variable)
		}
	}
	h.tdf, err = local.Start(ctx, cfg)
	if err != nil {
		return withRoom(c.a, tool.Locate(err))
	}
	h.slots = c.jobs.n
	for i, name := range []string{w.TaskOutputFilename, w.TaskErrorFilename} {
		h.outputs[i] = filepath.Join(h.tdf.Directory, name)
	}
	return nil
}

// withRoom adds what to do if the disk with the directories of the commands is full.
func withRoom(a *cli.App, err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w; make room in %s, or set TMPDIR to a directory on another disk", err,
			cmp.Or(a.Getenv("TMPDIR"), "/tmp"))
	}
	return err
}

// startRedis starts a Redis if none is configured, and writes its address into the configuration.
func (r *run) startRedis(tool *config.Tool) (*here, error) {
	h := &here{}
	if isConfigured(*tool) {
		return h, nil
	}
	redis, at, err := local.Private()
	if err != nil {
		return nil, err
	}
	at.Replicas = tool.Manager.Redis.Replicas
	h.redis, h.temporary, tool.Manager.Redis = redis, true, at
	atOnce := format.Counted(r.jobs.n, "command")
	if r.changed("resources") {
		atOnce = "as many commands as fit"
	}
	r.say("no TDF is configured, so this call runs one: %s at a time, on this machine", atOnce)
	return h, nil
}

// keepFiles makes the files of commands stay in the directory of the worker when the call ends.
func (h *here) keepFiles() {
	if h.tdf != nil {
		h.tdf.Keep.Store(true)
	}
}

// stop ends what runs on this machine. Commands that still run are ended, at once when ctx ends.
func (h *here) stop(ctx context.Context) error {
	err := h.stopWorker(ctx)
	if h.redis != nil {
		h.redis.Stop()
	}
	return err
}

// lost returns a channel that is closed when the Redis of the call has ended by itself.
func (h *here) lost() <-chan struct{} {
	if h.redis == nil {
		return nil
	}
	return h.redis.Ended()
}

// stopWorker ends the worker and the server of this call. The tasks whose commands it ends are open again.
func (h *here) stopWorker(ctx context.Context) error {
	if h.tdf == nil {
		return nil
	}
	t := h.tdf
	h.tdf = nil
	defer time.AfterFunc(killGrace, t.StopNow).Stop()
	defer context.AfterFunc(ctx, t.StopNow)()
	return t.Stop()
}

// packs reports whether a program carries the command: it has the files to send, or the variables of the caller.
func (r *run) packs() bool { return r.elsewhere() && (len(r.send) > 0 || len(r.env) > 0 || r.envAll) }

// pack packs the files to send, with a run.sh that runs the command.
func (c *campaign) pack() (packed program.Packed, err error) {
	temporary, err := os.MkdirTemp("", "tdf-send-*")
	if err != nil {
		return packed, err
	}
	defer os.RemoveAll(temporary)
	dir := filepath.Join(temporary, c.programName()) // calls with the same files store one program
	err = os.Mkdir(dir, 0o700)
	if err != nil {
		return packed, err
	}
	for _, path := range c.run.send {
		err := c.add(dir, path)
		if err != nil {
			return packed, err
		}
	}
	exports, err := c.exports()
	if err != nil {
		return packed, err
	}
	if c.shared {
		missing := sweep.Quote("the directory of the command does not exist on this machine: " + c.dir)
		exports += "cd " + sweep.Quote(c.dir) + " || { echo " + missing + " >\"$TDF_DIR/unfit\"; exit 1; }\n"
	}
	script := filepath.Join(dir, "run.sh")
	err = os.WriteFile(script, []byte("#!/bin/sh\n"+exports+"exec \"$@\"\n"), 0o755)
	if err != nil {
		return packed, err
	}
	return program.Pack(dir)
}

// add copies a file or directory to the same place below dir.
func (r *run) add(dir, path string) error {
	if !filepath.IsLocal(path) {
		return cli.Usagef("--send %s: want a path below the current directory", path)
	}
	path = filepath.Clean(path)
	if path == "run.sh" {
		return cli.Usagef("--send run.sh: this name is reserved; send a directory that contains the file")
	}
	from, to := filepath.Join(r.dir, path), filepath.Join(dir, path)
	info, err := os.Stat(from)
	if err != nil {
		return cli.Usagef("--send: %v", err)
	}
	err = os.MkdirAll(filepath.Dir(to), 0o755)
	if err != nil {
		return err
	}
	if info.IsDir() {
		err := os.CopyFS(to, os.DirFS(from))
		var at *fs.PathError
		if errors.As(err, &at) && errors.Is(err, fs.ErrInvalid) {
			return cli.Usagef("--send %s: %s is a socket, a pipe or a device; remove it", path, at.Path)
		}
		return err
	}
	if !info.Mode().IsRegular() {
		return cli.Usagef("--send %s: want a file or a directory; this is a socket, a pipe or a device", path)
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, info.Mode().Perm())
}
