package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/tdf-framework/tdf/internal/admin"
	"github.com/tdf-framework/tdf/internal/config"
	"github.com/tdf-framework/tdf/internal/format"
	"github.com/tdf-framework/tdf/internal/selection"
	"github.com/tdf-framework/tdf/internal/task"
	"github.com/tdf-framework/tdf/manager"
	"github.com/tdf-framework/tdf/program"
)

// A Client is a manager with methods that only tdf needs.
type Client struct {
	// has no defaults for tasks, because defaults would replace empty values from the command line
	*manager.Manager
	defaults  task.Properties // the configuration's [task_defaults]
	namespace string          // "" unless several namespaces work as one
}

// Namespace returns the client's namespace, or "" if it is the only one.
func (c *Client) Namespace() string { return c.namespace }

// TaskName returns the name of a task: its id, or NAMESPACE/ID if several namespaces work as one.
func (c *Client) TaskName(id int64) string { return manager.TaskName(c.namespace, id) }

func (c *Client) Admin() *admin.Admin { return admin.New(c.Manager) }

// RedisTime returns the time of Redis's clock.
func (c *Client) RedisTime(ctx context.Context) (task.Time, error) {
	now, err := c.Now(ctx)
	return task.At(now), err
}

// Define returns the properties of a new task. It keeps empty arguments, and uses the configuration's defaults for all
// other properties.
func (c *Client) Define(name, source, input string) task.Properties {
	p := c.defaults
	p.Program, p.Source, p.Input = name, source, input
	return p
}

// OpenAs opens tasks with exactly the given properties. The function is a method of the manager, or of its inside.
func OpenAs[T any](ctx context.Context, open func(context.Context, ...manager.Definition) ([]T, error),
	all ...task.Properties,
) ([]T, error) {
	definitions := make([]manager.Definition, len(all))
	for i := range all {
		definitions[i] = all[i].Definition()
	}
	return open(ctx, definitions...)
}

// StoreProgram stores a packed program in Redis. It says so with the given function.
func StoreProgram(
	ctx context.Context, m *Client, packed program.Packed, say func(text string, args ...any),
) error {
	if n := len(packed.LeftOut); n > 0 {
		say("not in the program: %s and others (%d in all), which tools of Python make; setup.sh can make them on "+
			"each worker", packed.LeftOut[0], n)
	}
	p, err := program.PushPacked(ctx, m.Manager, packed)
	if err != nil {
		return err
	}
	say("stored program %s: %s, %s", p.Program, format.Counted(p.Files, "file"), format.Size(p.Bytes))
	return nil
}

// Configured reads the configuration. Flags override environment variables, and environment variables override the
// file.
func (a *App) Configured(more ...config.Override) (config.Tool, error) {
	overrides, err := a.overrides()
	if err != nil {
		return config.Tool{}, err
	}
	file, err := a.ConfigFile()
	if err != nil {
		return config.Tool{}, err
	}
	tool, err := config.LoadTool(file, a.Env, append(overrides, more...)...)
	http := &tool.HTTP
	for _, path := range []*string{
		&tool.Manager.Redis.TLSCA, &tool.Manager.Redis.TLSCert, &tool.Manager.Redis.TLSKey,
		&http.TLSCert, &http.TLSKey, &http.ClientCA, &http.Users,
	} {
		*path = a.Path(*path)
	}
	return tool, err
}

// overrides returns the configuration keys that --set, --namespace and --redis set.
func (a *App) overrides() ([]config.Override, error) {
	var all []config.Override
	for _, s := range a.Set {
		key, value, ok := strings.Cut(s, "=")
		section, name, dotted := strings.Cut(key, ".")
		if !ok || !dotted {
			// quotes only the key, because the value may be secret
			return nil, Usagef("invalid value %q for --set: want SECTION.KEY=VALUE, such as redis.db=1", key)
		}
		all = append(all, config.Override{Section: section, Name: name, Value: value, Source: "--set"})
	}
	if a.Namespace != "" {
		all = append(all,
			config.Override{Section: "tdf", Name: "namespace", Value: a.Namespace, Source: "--namespace"},
			config.Override{Section: "tdf", Name: "namespaces", Source: "--namespace"})
	}
	if a.Redis != "" {
		host, port := a.Redis, ""
		if i := strings.LastIndexByte(a.Redis, ':'); i >= 0 && !strings.HasSuffix(a.Redis, "]") {
			host, port = a.Redis[:i], a.Redis[i+1:]
			if port == "" {
				return nil, Usagef("invalid value %q for --redis: no port after the colon; want HOST or HOST:PORT",
					a.Redis)
			}
		}
		all = append(all,
			config.Override{Section: "redis", Name: "host", Value: strings.Trim(host, "[]"), Source: "--redis"},
			config.Override{Section: "redis", Name: "sentinels", Source: "--redis"},
			config.Override{Section: "redis", Name: "cluster", Source: "--redis"})
		if port != "" {
			all = append(all, config.Override{Section: "redis", Name: "port", Value: port, Source: "--redis"})
		}
	}
	return slices.Clip(all), nil
}

// WithManager connects to Redis, runs a function with the connection, and closes the connection. If several namespaces
// work as one, it returns an error: commands that work in all of them use [App.WithShards].
func (a *App) WithManager(ctx context.Context, do func(*Client) error) error {
	tool, err := a.Tool()
	if err != nil {
		return err
	}
	if len(tool.Namespaces) > 1 {
		return Usagef("this command works in one namespace: name it with --namespace, one of %s",
			strings.Join(tool.Namespaces, ", "))
	}
	return a.WithManagerOf(ctx, tool, do)
}

// WithManagerOf does the same as withManager, but with a configuration that the caller has read.
func (a *App) WithManagerOf(ctx context.Context, tool config.Tool, do func(*Client) error) error {
	m, err := a.connect(ctx, tool)
	if err != nil {
		return err
	}
	defer m.Close()
	return do(m)
}

// Shards are the namespaces of the configuration, which work as one (docs/shards.md). Most configurations have one.
type Shards struct {
	*admin.Shards
	All []*Client
}

// In returns the client of a namespace. If there is only one namespace, its name may be "".
func (s *Shards) In(namespace string) (*Client, error) {
	if _, _, err := s.Shards.In(namespace); err != nil {
		return nil, Usagef("%v", err)
	}
	if namespace == "" {
		return s.All[0], nil
	}
	return s.All[slices.Index(s.Namespaces(), namespace)], nil
}

// WithShards does the same as WithManager for all namespaces of the configuration.
func (a *App) WithShards(ctx context.Context, do func(*Shards) error) error {
	tool, err := a.Tool()
	if err != nil {
		return err
	}
	return a.WithShardsOf(ctx, tool, do)
}

// WithShardsOf does the same as WithShards, but with a configuration that the caller has read.
func (a *App) WithShardsOf(ctx context.Context, tool config.Tool, do func(*Shards) error) error {
	names := namesIn(tool)
	s := &Shards{}
	var managers []*manager.Manager
	for _, name := range names {
		tool.Manager.Namespace = name
		m, err := a.connect(ctx, tool)
		if err != nil {
			return err
		}
		defer m.Close()
		if len(names) > 1 {
			m.namespace = name
		}
		s.All, managers = append(s.All, m), append(managers, m.Manager)
	}
	s.Shards = admin.NewShards(managers...)
	return do(s)
}

func namesIn(tool config.Tool) []string {
	if len(tool.Namespaces) == 0 {
		return []string{tool.Manager.Namespace}
	}
	return tool.Namespaces
}

// Unconnected runs a function with the administrators of all namespaces of the configuration, which connect to Redis at
// their first call. So the function also runs while Redis does not answer.
func (a *App) Unconnected(tool config.Tool, do func([]*admin.Admin) error) error {
	var all []*admin.Admin
	for _, name := range namesIn(tool) {
		tool.Manager.Namespace = name
		m, err := a.managerOf(tool)
		if err != nil {
			return err
		}
		defer m.Close()
		all = append(all, m.Admin())
	}
	return do(all)
}

// WithTask runs a function with a task that the user names, and a connection to its namespace.
func (a *App) WithTask(ctx context.Context, name string, do func(m *Client, id int64) error) error {
	namespace, text := manager.SplitTaskName(name)
	id, err := selection.ID(text)
	if err != nil {
		return err
	}
	return a.WithShards(ctx, func(s *Shards) error {
		m, err := s.In(namespace)
		if err != nil {
			return err
		}
		return do(m, id)
	})
}

// firstAnswer is the time limit for the first answer of Redis. Later calls wait for Redis without a limit.
const firstAnswer = 5 * time.Second

var errNoAnswer = errors.New("no answer within 5 s; check that Redis runs at this address, or start a Redis with " +
	"tdf up")

// connect returns a client that writes the user's name into the logs of tasks.
func (a *App) connect(ctx context.Context, tool config.Tool) (*Client, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, firstAnswer, errNoAnswer)
	defer cancel()
	if err := reach(ctx, tool.Manager.Redis); err != nil {
		return nil, err
	}
	m, err := a.managerOf(tool)
	if err != nil {
		return nil, err
	}
	return m, m.Connect(ctx)
}

// managerOf returns a client that has not connected yet.
func (a *App) managerOf(tool config.Tool) (*Client, error) {
	o := manager.OptionsOf(tool.Manager)
	o.Name, o.Log, o.TaskDefaults = userAtHost(), a.Log, manager.Definition{}
	m, err := manager.New(o)
	if err != nil {
		return nil, err
	}
	return &Client{Manager: m, defaults: tool.Manager.TaskDefaults}, nil
}

// reach connects to Redis once, or to the sentinels or nodes until one listens. If no process listens there, or if the
// host is unknown, reach fails at once. It ignores a time-out, because the client waits for a slow Redis.
func reach(ctx context.Context, r config.Redis) error {
	addrs, remedy := []string{r.Addr()}, "start a Redis with tdf up, or name another Redis with --redis HOST:PORT"
	switch {
	case len(r.Sentinels) > 0:
		addrs, remedy = r.Sentinels, "no address in [redis] sentinels can be reached"
	case len(r.Cluster) > 0:
		addrs, remedy = r.Cluster, "no address in [redis] cluster can be reached"
	}
	var err error
	for _, addr := range addrs {
		var connection net.Conn
		connection, err = new(net.Dialer).DialContext(ctx, r.Network(), addr)
		if err == nil {
			return connection.Close()
		}
		if ctx.Err() != nil {
			return fmt.Errorf("connect to redis at %s: %w", addr, context.Cause(ctx))
		}
		var network net.Error
		if errors.As(err, &network) && network.Timeout() {
			return nil
		}
	}
	return fmt.Errorf("connect to redis: %w; %s", err, remedy)
}

// userAtHost returns the name of the user and the host, for the logs of tasks.
func userAtHost() string {
	name, host := "unknown", "?"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return name + "@" + host
}
