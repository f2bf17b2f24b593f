package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/internal/command"
	"github.com/tdf-framework/tdf/internal/local"
	"github.com/tdf-framework/tdf/internal/localpass"
)

// An up is what the flags of tdf up say.
type up struct {
	a         *app
	workers   int
	data      string
	directory string
	verbose   bool
	password  *localpass.File // nil: the configuration has a password
}

const mostWorkers = 1000

func newUp(a *app) *cobra.Command {
	u := up{a: a}
	c := &cobra.Command{
		Use: "up", Short: "Run Redis, a server and workers on this machine until Ctrl-C",
		Long: "Runs all of TDF here: a Redis on the loopback interface, a server, and workers. Without --data the Redis is an embedded\n" +
			"one that keeps nothing when this ends; with it, a redis-server of its own (which has to be installed) keeps everything there.\n" +
			"Redis gets a password that the other commands of this user find by themselves, unless [redis] password sets one.\n" +
			"No configuration is needed; where there is one, its [redis] host and port, [server] and [worker] hold.\n" +
			"The first Ctrl-C lets programs that run finish for [worker] grace, the second ends them.",
		Example: "  tdf up --workers 4 --data ~/tdf",
		Args:    noArguments,
		RunE:    func(c *cobra.Command, _ []string) error { return u.run(c.Context(), c.Flags().Changed("workers")) },
	}
	flags := c.Flags()
	flags.IntVar(&u.workers, "workers", 0, "how many workers; each runs [worker] concurrency programs at once (default: as many as make one slot per core)")
	flags.StringVar(&u.data, "data", "", "keep the data in this `DIR`")
	flags.StringVar(&u.directory, "directory", "", "where workers put programs: a `DIR` (default: [worker] directory if set, else work below --data, else a temporary one)")
	flags.BoolVarP(&u.verbose, "verbose", "v", false, "log all that [log] level allows, not only warnings and errors")
	return c
}

// workersFor returns how many workers make one slot per core. Concurrency is that of each; 0: one slot per core.
func workersFor(cores, concurrency int) int {
	if concurrency == 0 {
		return 1
	}
	return min(max(1, cores/concurrency), mostWorkers)
}

// run runs everything; chosen says whether --workers was given.
func (u *up) run(ctx context.Context, chosen bool) error {
	if chosen && (u.workers < 1 || u.workers > mostWorkers) {
		return usage("--workers %d is not a number from 1 to %d", u.workers, mostWorkers)
	}
	tool, err := u.a.tool()
	if err != nil {
		return err
	}
	if !chosen {
		u.workers = workersFor(runtime.GOMAXPROCS(0), tool.Worker.Concurrency)
	}
	if tool.Manager.Redis, err = u.here(tool.Manager.Redis); err != nil {
		return err
	}
	told, stop := signal.NotifyContext(ctx, syscall.SIGHUP) // the terminal was closed
	defer stop()
	if tool.Manager.Redis.Password == "" {
		if u.password, err = keepPassword(tool.Manager.Redis); err != nil {
			return err
		}
		defer u.password.Close()
		tool.Manager.Redis.Password = u.password.Password
	}
	redis, err := u.startRedis(tool.Manager.Redis)
	if err != nil {
		return err
	}
	defer redis.Stop()
	if err := u.letIn(tool.Worker.User); err != nil {
		return err
	}
	return u.serve(told, tool, redis)
}

// here returns where the Redis of this command listens: on the loopback interface, whoever asks for more.
func (u *up) here(at config.Redis) (config.Redis, error) {
	if at.Host == "localhost" {
		at.Host = "127.0.0.1"
	}
	ip := net.ParseIP(at.Host)
	switch {
	case ip == nil || !ip.IsLoopback():
		return at, usage("the Redis of tdf up listens on this machine only, and [redis] host is %s: leave it out, "+
			"or run tdf-server and tdf-worker for the Redis there", at.Host)
	case at.TLS:
		return at, usage("the Redis of tdf up speaks no TLS, and [redis] tls asks for it")
	case at.Username != "" && at.Username != "default":
		return at, usage("the Redis of tdf up has no user %q: leave [redis] username out", at.Username)
	}
	return at, nil
}

// keepPassword makes a password, and keeps it where the other commands of this user find it.
func keepPassword(at config.Redis) (*localpass.File, error) {
	password, err := localpass.Create(at.Host, at.Port)
	switch {
	case errors.Is(err, localpass.ErrHeld):
		return nil, taken(at)
	case err != nil:
		return nil, fmt.Errorf("keep the password of Redis: %w; set [redis] password to choose one that needs no file", err)
	}
	return password, nil
}

func taken(at config.Redis) error {
	return usage("something listens on %s already: if it is a Redis, run tdf-server and tdf-worker for it; else choose another port: tdf --redis localhost:PORT up", at.Addr())
}

// letIn has programs that run as another user reach what they need below --data, which is the owner's alone.
func (u *up) letIn(other string) error {
	if other == "" {
		return nil
	}
	syscall.Umask(0o022)
	if u.data == "" {
		return nil
	}
	return os.Chmod(u.data, 0o711)
}

// startRedis: what is kept of programs, inputs and outputs is nobody else's to read.
func (u *up) startRedis(at config.Redis) (redis *local.Redis, err error) {
	defer syscall.Umask(syscall.Umask(0o077))
	if u.data == "" {
		redis, err = local.Embedded(at)
	} else {
		redis, err = local.Serve(at, u.data)
	}
	switch {
	case errors.Is(err, local.ErrTaken):
		return nil, taken(at)
	case errors.Is(err, local.ErrInUse), errors.Is(err, local.ErrSnapshot):
		return nil, usage("--data %s: %v", u.data, err)
	case errors.Is(err, local.ErrNoProgram):
		return nil, usage("%v", err)
	case err != nil:
		return nil, fmt.Errorf("starting Redis: %w", err)
	}
	return redis, nil
}

// serve runs everything else until told ends, or something goes wrong.
func (u *up) serve(told context.Context, tool config.Tool, redis *local.Redis) error {
	cfg, err := u.config(tool)
	if err != nil {
		return err
	}
	starting, end := context.WithCancelCause(told)
	defer end(nil)
	go func() {
		select {
		case <-redis.Ended():
			end(redis.Err())
		case <-starting.Done():
		}
	}()
	t, err := local.Start(starting, cfg)
	if err != nil {
		if told.Err() != nil && !command.Refused(err) {
			return nil
		}
		return err
	}
	u.tell(tool, cfg, t.Directory)
	return errors.Join(u.await(told, t, redis, tool.Worker.Grace), u.stop(t))
}

func (u *up) config(tool config.Tool) (local.Config, error) {
	host, err := os.Hostname()
	if err != nil {
		return local.Config{}, err
	}
	cfg := local.Config{Server: tool.Server, Worker: tool.Worker, Name: host, Version: command.Version(), Log: u.log(tool)}
	cfg.Server.Redis, cfg.Worker.Redis = tool.Manager.Redis, tool.Manager.Redis
	cfg.Worker.Directory = u.workDirectory(tool.Worker.Directory)
	for i := range u.workers {
		cfg.Workers = append(cfg.Workers, fmt.Sprintf("%s-%d", host, i+1))
	}
	return cfg, nil
}

func (u *up) log(tool config.Tool) *slog.Logger {
	if u.verbose {
		return tool.Server.Log.Logger(u.a.stderr)
	}
	return u.a.log
}

// workDirectory returns where programs are to be; "": in a temporary directory.
func (u *up) workDirectory(configured string) string {
	switch {
	case u.directory != "":
		return u.directory
	case configured != ".": // which is the default, and no place for programs of others
		return configured
	case u.data != "":
		return filepath.Join(u.data, "work")
	}
	return ""
}

// tell says what runs, and what comes next.
func (u *up) tell(tool config.Tool, cfg local.Config, directory string) {
	redis := "embedded: nothing is kept when this ends (--data DIR keeps it)"
	if u.data != "" {
		redis = "redis-server, its data in " + u.data
	}
	workers := cfg.Workers[0]
	if n := len(cfg.Workers); n > 1 {
		workers = fmt.Sprintf("%s … %s", workers, cfg.Workers[n-1])
	}
	slots := cfg.Worker.Concurrency
	if slots == 0 {
		slots = runtime.NumCPU()
	}
	say := u.a.say
	say("redis       %s, %s", tool.Manager.Redis.Addr(), redis)
	say("namespace   %s", tool.Manager.Namespace)
	say("server      %s", cfg.Name)
	say("workers     %s, %d at once each, programs in %s", workers, slots, directory)
	if u.password != nil {
		say("password    in %s, where the commands of this user find it", u.password.Path)
	}
	say("elsewhere   %s", exportLine(tool.Manager))
	say("Ctrl-C ends it. Next, in another terminal: %s", u.next())
}

// exportLine has a shell's other commands find this Redis, whatever their configuration says.
func exportLine(m config.Manager) string {
	words := []string{"export", "TDF_CFG_TDF_NAMESPACE=" + shellWord(m.Namespace), "TDF_CFG_REDIS_HOST=" + m.Redis.Host, "TDF_CFG_REDIS_PORT=" + strconv.Itoa(m.Redis.Port)}
	if m.Redis.DB != 0 {
		words = append(words, "TDF_CFG_REDIS_DB="+strconv.Itoa(m.Redis.DB))
	}
	return strings.Join(words, " ")
}

// next is a command with the flags that this one was given.
func (u *up) next() string {
	words := []string{"tdf"}
	for _, flag := range []struct{ name, value string }{{"--config", u.a.file}, {"--namespace", u.a.namespace}, {"--redis", u.a.redis}} {
		if flag.value != "" {
			words = append(words, flag.name, shellWord(flag.value))
		}
	}
	for _, s := range u.a.set {
		if key, _, _ := strings.Cut(s, "="); strings.HasSuffix(key, "password") {
			s = key + "=…"
		}
		words = append(words, "--set", shellWord(s))
	}
	return strings.Join(append(words, "open --program DIR --input 'WORDS'"), " ")
}

// shellWord writes what a shell reads as one word.
func shellWord(s string) string {
	special := func(r rune) bool {
		return !strings.ContainsRune("_-+=./:@%,", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}
	if s != "" && !strings.ContainsFunc(s, special) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// await returns when it is told to stop: nil, or when something ended by itself: why.
func (u *up) await(told context.Context, t *local.TDF, redis *local.Redis, grace time.Duration) error {
	select {
	case <-told.Done():
		limit := ""
		if grace < config.Forever {
			limit = fmt.Sprintf(" for %v", grace)
		}
		u.a.say("stopping: programs that run may finish%s; Ctrl-C again ends them", limit)
		return nil
	case err := <-t.Failed():
		return err
	case <-redis.Ended():
		t.StopNow() // there is nowhere to report to
		return redis.Err()
	}
}

func (u *up) stop(t *local.TDF) error {
	defer context.AfterFunc(u.a.again, t.StopNow)()
	return t.Stop()
}
