package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/user"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tdf-framework/tdf/config"
	"github.com/tdf-framework/tdf/internal/command"
	"github.com/tdf-framework/tdf/manager"
)

// An app is one call of the command: where it reads and writes, and what its flags say about
// where the tasks are.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	style          style
	again          context.Context // ends when it was told to stop twice
	log            *slog.Logger

	file      string   // --config
	namespace string   // --namespace
	redis     string   // --redis
	set       []string // --set
	begun     bool     // the arguments were understood

	grace atomic.Int64 // how long it may take to stop, a [time.Duration]
}

func newApp(stdin io.Reader, stdout, stderr io.Writer) *app {
	a := &app{
		stdin: stdin, stdout: stdout, stderr: stderr, again: context.Background(),
		style: newStyle(stdout, stderr), log: slog.New(talk(stderr)),
	}
	a.grace.Store(int64(usualGrace))
	return a
}

// talk logs lines for people: warnings and errors, without time and level.
func talk(w io.Writer) slog.Handler {
	return slog.NewTextHandler(w, &slog.HandlerOptions{
		Level: slog.LevelWarn,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey) {
				return slog.Attr{}
			}
			return a
		},
	})
}

// root is the command with all that it can do.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:               "tdf",
		Short:             "Open, watch, understand and steer tasks",
		Version:           command.Version(),
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: a.begin,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: false},
	}
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(wrongFlag)
	flags := root.PersistentFlags()
	flags.StringVar(&a.file, "config", "", "configuration `FILE` (default: $TDF_CONFIG, else ./tdf.cfg if it is there)")
	flags.StringVar(&a.namespace, "namespace", "", "the project's `NAME`: [tdf] namespace")
	flags.StringVar(&a.redis, "redis", "", "`HOST[:PORT]` of Redis: [redis] host and port")
	flags.StringArrayVar(&a.set, "set", nil, "any other key of the configuration: `SECTION.KEY=VALUE`")
	completeGlobalFlags(root)
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, make := range g.commands {
			c := make(a)
			c.GroupID = g.id
			a.completeValues(c)
			root.AddCommand(c)
		}
	}
	return root
}

// begin is called when the arguments were understood. An empty name is no name: most likely a variable that is not set.
func (a *app) begin(c *cobra.Command, args []string) error {
	a.begun = true
	if c.Name() == "up" { // programs that run may finish first
		a.grace.Store(int64(noLimit))
	}
	if strings.HasPrefix(c.Name(), cobra.ShellCompRequestCmd) {
		return nil
	}
	if slices.Contains(args, "") {
		return usage("an argument of %s is empty", c.CommandPath())
	}
	var empty []string
	c.Flags().Visit(func(f *pflag.Flag) {
		if f.Value.String() == "" && !slices.Contains(mayBeEmpty, f.Name) {
			empty = append(empty, "--"+f.Name)
		}
	})
	if len(empty) > 0 {
		return usage("%s: the value is empty; leave it out, or give one", strings.Join(empty, ", "))
	}
	return nil
}

// mayBeEmpty are the flags that set texts of tasks.
var mayBeEmpty = []string{"input", "meta"}

// A group of commands, as --help lists them.
type group struct {
	id, title string
	commands  []func(*app) *cobra.Command
}

// groups are all commands there are.
var groups = []group{
	{"open", "Open tasks:", []func(*app) *cobra.Command{newOpen, newPush}},
	{"look", "Look:", []func(*app) *cobra.Command{newWatch, newLs, newShow, newOutput, newFailures, newExplain, newResults, newWorkers}},
	{"steer", "Steer:", []func(*app) *cobra.Command{newRetry, newCancel, newArchive, newRemove, newRequeue, newSet, newDrain, newPrograms}},
	{"operate", "Operate:", []func(*app) *cobra.Command{newUp, newStats, newDoctor, newCheck, newDump, newLoad, newCompletion}},
}

// tool reads the configuration: flags win over the environment, and that over the file.
func (a *app) tool() (config.Tool, error) {
	overrides, err := a.overrides()
	if err != nil {
		return config.Tool{}, err
	}
	return config.LoadTool(a.configFile(), overrides...)
}

const usualFile = "tdf.cfg"

func (a *app) configFile() string {
	if a.file != "" {
		return a.file
	}
	if path := os.Getenv("TDF_CONFIG"); path != "" {
		return path
	}
	if _, err := os.Stat(usualFile); err == nil {
		return usualFile
	}
	return ""
}

func (a *app) overrides() ([]config.Override, error) {
	var all []config.Override
	for _, s := range a.set {
		key, value, ok := strings.Cut(s, "=")
		section, name, dotted := strings.Cut(key, ".")
		if !ok || !dotted {
			return nil, usage("--set %q is not SECTION.KEY=VALUE, such as redis.db=1", key) // the value may be secret
		}
		all = append(all, config.Override{Section: section, Name: name, Value: value, Source: "--set"})
	}
	if a.namespace != "" {
		all = append(all, config.Override{Section: "tdf", Name: "namespace", Value: a.namespace, Source: "--namespace"})
	}
	if a.redis != "" {
		host, port := a.redis, ""
		if i := strings.LastIndexByte(a.redis, ':'); i >= 0 && !strings.HasSuffix(a.redis, "]") {
			host, port = a.redis[:i], a.redis[i+1:]
			if port == "" {
				return nil, usage("--redis %q ends in a colon; it is HOST, or HOST:PORT", a.redis)
			}
		}
		all = append(all, config.Override{Section: "redis", Name: "host", Value: strings.Trim(host, "[]"), Source: "--redis"})
		if port != "" {
			all = append(all, config.Override{Section: "redis", Name: "port", Value: port, Source: "--redis"})
		}
	}
	return slices.Clip(all), nil
}

// patience is how long a Redis that cannot be used is waited for before the first answer.
const patience = 5 * time.Second

var errImpatient = errors.New("there was no answer within 5 s; is it running, and is this the right one? (tdf up starts one)")

// manager connects to Redis. What it does is noted in the tasks' logs under the user's name.
func (a *app) manager(ctx context.Context) (*client, error) {
	tool, err := a.tool()
	if err != nil {
		return nil, err
	}
	return a.managerOf(ctx, tool)
}

func (a *app) managerOf(ctx context.Context, tool config.Tool) (*client, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errImpatient)
	defer cancel()
	if err := reach(ctx, tool.Manager.Redis.Addr()); err != nil {
		return nil, err
	}
	o := manager.OptionsOf(tool.Manager)
	o.Name, o.Log = who(), a.log
	m, err := manager.New(o)
	if err != nil {
		return nil, err
	}
	return &client{m}, m.Connect(ctx)
}

// reach fails at once where nothing listens, or where there is no such host. A Redis that is only slow, or not ready yet, is
// for those who connect to wait for.
func reach(ctx context.Context, addr string) error {
	connection, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	var network net.Error
	switch {
	case err == nil:
		return connection.Close()
	case ctx.Err() != nil:
		return fmt.Errorf("connect to redis at %s: %w", addr, context.Cause(ctx))
	case errors.As(err, &network) && network.Timeout():
		return nil
	}
	return fmt.Errorf("connect to redis: %w; tdf up starts one, --redis HOST:PORT names another", err)
}

// who names the user for the tasks' logs.
func who() string {
	name, host := "somebody", "?"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return name + "@" + host
}

// say writes a line of talk to stderr. Values from Redis among the args cannot do anything to a terminal.
func (a *app) say(format string, args ...any) {
	fmt.Fprintln(a.stderr, printable(fmt.Sprintf(format, args...)))
}
