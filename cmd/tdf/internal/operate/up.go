package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-framework/tdf/cmd/tdf/internal/cli"
	"github.com/tdf-framework/tdf/internal/command"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/local"
	"github.com/tdf-framework/tdf/internal/localpass"
	"github.com/tdf-framework/tdf/internal/worker/resources"
)

// An up holds the flags of tdf up.
type up struct {
	a         *cli.App
	workers   int
	data      string
	directory string
	verbose   bool
	password  *localpass.File // nil if the configuration sets the password
}

const maxWorkers = 1000

// revokeTime is how long the end of tdf up may wait for Redis to remove its token.
const revokeTime = 2 * time.Second

func Up(a *cli.App) *cobra.Command {
	u := up{a: a}
	c := &cobra.Command{
		Use: "up", Short: "Run Redis, a server, workers and the HTTP API on this machine",
		Long: "Runs a Redis on the loopback interface, a server, and workers until Ctrl-C. The Redis is an installed " +
			"redis-server (7 or newer).\n" +
			"With --data, it keeps its data in that directory. Without --data, its data are lost when the command ends; " +
			"if none is\ninstalled, the Redis is then embedded.\n" +
			"Unless [redis] password is set, Redis gets a new password. Other commands of this user find it " +
			"automatically.\n" +
			"It serves the HTTP API (docs/http.md) and the dashboard (docs/dashboard.md) on " + config.UsualListen +
			" or a free port, and prints how to use them. With --set http.listen= it serves no API.\n" +
			"The command needs no configuration file. From a configuration, it uses host and port of [redis], and " +
			"all keys of [server], [worker], [http] and [notify].\n" +
			"After the first Ctrl-C, programs may keep running for the time of [worker] grace. The second Ctrl-C " +
			"ends them.",
		Example: "  tdf up\n  tdf up --workers 4 --data ~/tdf",
		Args:    cli.NoArguments,
		RunE:    func(c *cobra.Command, _ []string) error { return u.run(c.Context(), c.Flags().Changed("workers")) },
	}
	flags := c.Flags()
	flags.IntVar(&u.workers, "workers", 0, "`N` number of workers; each has `concurrency` slots, a key of [worker] "+
		"(default: as many workers as give one slot per core)")
	flags.StringVar(&u.data, "data", "", "`DIR` directory in which Redis keeps its data")
	flags.StringVar(&u.directory, "directory", "", "`DIR` directory for the workers' programs (default: [worker] "+
		"directory if set, else work in --data, else a temporary directory)")
	flags.BoolVarP(&u.verbose, "verbose", "v", false,
		"all log lines that [log] level allows, not only warnings and errors")
	return c
}

// workersFor returns the number of workers that together have one slot per core. Each worker has concurrency slots; 0
// means one slot per core.
func workersFor(cores, concurrency int) int {
	if concurrency == 0 {
		return 1
	}
	return min(max(1, cores/concurrency), maxWorkers)
}

// run runs Redis, the server and the workers until a signal. If the user gave --workers, chosen is true.
func (u *up) run(ctx context.Context, chosen bool) error {
	if chosen && (u.workers < 1 || u.workers > maxWorkers) {
		return cli.Usagef("invalid value %d for --workers: want a number from 1 to %d", u.workers, maxWorkers)
	}
	tool, err := u.a.Configured()
	if err != nil {
		return err
	}
	if len(tool.Namespaces) > 1 {
		return cli.Usagef("[tdf] namespaces is set: tdf up works in one namespace; name it with --namespace")
	}
	u.data, u.directory = u.a.Path(u.data), u.a.Path(u.directory)
	if !chosen {
		u.workers = workersFor(resources.Cores(), tool.Worker.Concurrency)
	}
	if tool.Manager.Redis, err = localOnly(tool.Manager.Redis); err != nil {
		return err
	}
	redis, err := u.openRedis(&tool.Manager.Redis, cli.NamesRedis(tool))
	if u.password != nil {
		defer u.password.Close()
	}
	if err != nil {
		return err
	}
	defer redis.Stop()
	if err := u.letIn(tool.Worker.User); err != nil {
		return err
	}
	return u.serve(ctx, tool, redis)
}

// serve runs the server and the workers until ctx ends, or until Redis or a component fails.
func (u *up) serve(ctx context.Context, tool config.Tool, redis *local.Redis) error {
	cfg, err := u.config(tool)
	if err != nil {
		return err
	}
	starting, end := context.WithCancelCause(ctx)
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
		if ctx.Err() != nil && !command.Refused(err) {
			return nil
		}
		return tool.Locate(err)
	}
	if !tool.IsSet("http", "blobs") {
		tool.HTTP.Blobs = filepath.Join(cmp.Or(u.data, filepath.Join(t.Directory, ".tdf")), "blobs")
	}
	api, err := u.startAPI(starting, tool, cfg.Log)
	if err != nil {
		return errors.Join(err, u.stop(t))
	}
	u.announce(tool, cfg, t.Directory, redis.Embedded, &api)
	return errors.Join(u.await(ctx, t, redis, &api, tool.Worker.Grace), u.stop(t), api.stop())
}

// config returns the configuration of the server and the workers.
func (u *up) config(tool config.Tool) (local.Config, error) {
	host, err := os.Hostname()
	if err != nil {
		return local.Config{}, err
	}
	cfg := local.Config{
		Server: tool.Server, Worker: tool.Worker, Notify: tool.Notify, Name: host,
		Version: command.Version(), Log: u.log(tool),
	}
	cfg.Server.Redis, cfg.Worker.Redis = tool.Manager.Redis, tool.Manager.Redis
	cfg.Worker.API = config.API{} // its workers reach its own Redis
	cfg.Worker.Directory = u.workDirectory(tool.Worker.Directory)
	for i := range u.workers {
		cfg.Workers = append(cfg.Workers, fmt.Sprintf("%s-%d", host, i+1))
	}
	return cfg, nil
}

func (u *up) log(tool config.Tool) *slog.Logger {
	if u.verbose {
		return tool.Server.Log.Logger(u.a.Stderr)
	}
	return u.a.Log
}

// workDirectory returns the directory for programs, or "" for a temporary directory.
func (u *up) workDirectory(configured string) string {
	switch {
	case u.directory != "":
		return u.directory
	case configured != ".": // not the default, which would put programs into the current directory
		return configured
	case u.data != "":
		return filepath.Join(u.data, "work")
	}
	return ""
}

// announce prints the running components with their addresses and directories, and an example of a next command.
func (u *up) announce(tool config.Tool, cfg local.Config, directory string, embedded bool, api *upAPI) {
	redis := "the data are lost at the end (--data DIR keeps them)"
	switch {
	case u.data != "":
		redis = "redis-server with its data in " + u.data
	case embedded:
		redis = "embedded, for up to 20,000 tasks: " + redis
	default:
		redis = "redis-server: " + redis
	}
	workers := cfg.Workers[0]
	if n := len(cfg.Workers); n > 1 {
		workers = fmt.Sprintf("%s … %s", workers, cfg.Workers[n-1])
	}
	slots := cfg.Worker.Concurrency
	if slots == 0 {
		slots = resources.Cores()
	}
	say := u.a.Say
	say("config      %s", cmp.Or(tool.File, "no file"))
	say("redis       %s, %s", tool.Manager.Redis.Addr(), redis)
	say("namespace   %s", tool.Manager.Namespace)
	say("server      %s", cfg.Name)
	say("workers     %s with %s each, programs in %s", workers, format.Counted(slots, "slot"), directory)
	if u.password != nil {
		say("password    in %s, where the commands of this user find it", u.password.Path)
	}
	say("api         %s", api.about())
	if api.login != "" {
		say("dashboard   %s (logs in one browser, once; tdf login prints another link)", api.login)
	}
	say("environment %s", exportLine(tool.Manager))
	for _, addr := range localpass.Running() {
		if addr != tool.Manager.Redis.Addr() {
			say("another tdf up of this user runs, with its Redis at %s: name the Redis with --redis %s", addr,
				tool.Manager.Redis.Addr())
		}
	}
	say("Ctrl-C ends tdf up. Next, in another terminal: %s", u.next())
}

// exportLine returns a shell command. After it, all tdf commands in the same shell use this Redis.
func exportLine(m config.Manager) string {
	words := []string{
		"export", "TDF_CFG_TDF_NAMESPACE=" + cli.ShellWord(m.Namespace),
		"TDF_CFG_REDIS_HOST=" + m.Redis.Host, "TDF_CFG_REDIS_PORT=" + strconv.Itoa(m.Redis.Port),
	}
	if m.Redis.DB != 0 {
		words = append(words, "TDF_CFG_REDIS_DB="+strconv.Itoa(m.Redis.DB))
	}
	return strings.Join(words, " ")
}

// next returns an example of a tdf command, with the global flags that tdf up was called with.
func (u *up) next() string {
	words := []string{"tdf"}
	for _, flag := range []struct{ name, value string }{
		{"--config", u.a.File},
		{"--namespace", u.a.Namespace},
		{"--redis", u.a.Redis},
	} {
		if flag.value != "" {
			words = append(words, flag.name, cli.ShellWord(flag.value))
		}
	}
	for _, s := range u.a.Set {
		if key, _, _ := strings.Cut(s, "="); strings.HasSuffix(key, "password") {
			s = key + "=…"
		}
		words = append(words, "--set", cli.ShellWord(s))
	}
	return strings.Join(append(words, "open --program DIR --input 'WORDS'"), " ")
}

// await returns nil when ctx ends. If Redis or a component ends before that, await returns its error.
func (u *up) await(ctx context.Context, t *local.TDF, redis *local.Redis, api *upAPI, grace time.Duration) error {
	select {
	case <-ctx.Done():
		limit := ""
		if grace < config.Forever {
			limit = fmt.Sprintf(" for %v", grace)
		}
		u.a.Say("stopping: running programs may finish%s; Ctrl-C again ends them", limit)
		return nil
	case err := <-t.Failed():
		return err
	case err := <-api.ended:
		api.ended <- err // stop reads it, too
		return err
	case <-redis.Ended():
		t.StopNow() // workers cannot report results without Redis, so it is useless to let programs finish
		return redis.Err()
	}
}

// stop ends the server and the workers. It waits for running programs, but not after the second signal.
func (u *up) stop(t *local.TDF) error {
	defer context.AfterFunc(u.a.Force, t.StopNow)()
	return t.Stop()
}
