package config

import (
	"cmp"
	"errors"
	"strings"

	"github.com/tdf-framework/tdf/internal/task"
)

// A Tool is the configuration of the command tdf, which can act as a manager, a server or a worker.
type Tool struct {
	File    string // path of the file; "" means that no file was read
	Manager Manager
	Server  Server
	Worker  Worker
	HTTP    HTTP
	Notify  Notify

	// Namespaces are several that work as one (docs/shards.md). None means only that of Manager.
	Namespaces []string

	// WorkerAPI is why the file cannot be that of a tdf-worker over the HTTP API, or nil.
	WorkerAPI error

	from map[string]string // maps the environment variable of each set key to the source of the key's value
}

// IsSet reports whether the file, the environment or an override sets a key.
func (t Tool) IsSet(section, name string) bool {
	k := find(section, name)
	if k == nil {
		return false
	}
	_, ok := t.from[k.env()]
	return ok
}

// Locate sets the Source of an [*Error] that a caller creates after it has loaded the configuration: it is the source
// of the key's value. Locate returns all other errors unchanged.
func (t Tool) Locate(err error) error {
	if e := (*Error)(nil); errors.As(err, &e) && e.Source == "" {
		e.Source = cmp.Or(t.from[envPrefix+strings.ToUpper(e.Section+"_"+e.Key)], t.File, noFile)
	}
	return err
}

// An Override is a value that overrides the file and the environment.
type Override struct {
	Section, Name, Value string
	Source               string // the source that errors name, such as a flag
}

// DefaultNamespace is the default namespace of a Tool without a file.
const DefaultNamespace = "tdf"

// LoadTool reads the file at path. If path is "", LoadTool reads no file. The environment variables in environ
// ("NAME=value") override the file, and overrides override both. If the host is "embedded", the tool's manager and
// worker connect to the loopback address. Unless a key says otherwise, tasks have fail_on=exit: only the tasks of a
// manager's own program keep the original's rule (docs/lifecycle.md, "What makes a round fail"). Every error is an
// [*Error].
func LoadTool(path string, environ []string, overrides ...Override) (Tool, error) {
	s := defaults(noFile)
	s.namespace = DefaultNamespace
	if path != "" {
		data, err := readFile(path)
		if err != nil {
			return Tool{}, err
		}
		s = defaults(path)
		if err := s.read(data); err != nil {
			return Tool{}, err
		}
	}
	if err := s.finish(environ, overrides...); err != nil {
		return Tool{}, err
	}
	t := Tool{
		File: path, Manager: s.manager, Server: s.server, Worker: s.worker, HTTP: s.http, Notify: s.notify,
		Namespaces: s.namespaces, WorkerAPI: s.checkAPI(), from: s.from,
	}
	if w, err := s.forNamespaces(); err == nil { // otherwise, tdf-worker refuses the file
		t.Worker = w
	}
	if !t.IsSet("task_defaults", "fail_on") {
		t.Manager.TaskDefaults.FailOn = task.FailOnExit
	}
	if s.redis.Embedded() {
		t.Manager.Redis.Host, t.Worker.Redis.Host = loopback, loopback
	}
	return t, nil
}

// override sets the key that an Override names.
func (s *settings) override(o Override) error {
	k := find(o.Section, o.Name)
	if k == nil {
		return &Error{Source: o.Source, Section: o.Section, Key: o.Name, Problem: "unknown key"}
	}
	return s.set(k, o.Source, o.Value)
}
