package config

import "os"

// A Tool is what the command tdf needs to know: at times it is a manager, a server, and workers.
type Tool struct {
	Manager Manager
	Server  Server
	Worker  Worker

	said map[string]string // what the file, the environment or an override gave, by its variable's name
}

// Says reports whether a key was given, by the file, the environment or an override: else it has its default.
func (t Tool) Says(section, name string) bool {
	k := find(section, name)
	if k == nil {
		return false
	}
	_, ok := t.said[k.env()]
	return ok
}

// An Override is the value of a key that wins over the file and the environment.
type Override struct {
	Section, Name, Value string
	Source               string // what an error names instead of a file: the flag, say
}

// DefaultNamespace is that of a Tool without a file, where nothing else names one.
const DefaultNamespace = "tdf"

// LoadTool reads the file at path; environment variables win over it, and overrides over both. Without a
// file, path is "". A Redis that is embedded is one that the tool itself runs as a server, and reaches at
// the loopback address otherwise. Every error is an [*Error].
func LoadTool(path string, overrides ...Override) (Tool, error) {
	s := defaults("(no file)")
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
	if err := s.finish(os.Environ(), overrides...); err != nil {
		return Tool{}, err
	}
	t := Tool{Manager: s.manager, Server: s.server, Worker: s.worker, said: s.from}
	if s.redis.Embedded() {
		t.Manager.Redis.Host, t.Worker.Redis.Host = loopback, loopback
	}
	return t, nil
}

// override sets one key by what is neither a file nor the environment.
func (s *settings) override(o Override) error {
	k := find(o.Section, o.Name)
	if k == nil {
		return &Error{Source: o.Source, Section: o.Section, Key: o.Name, Problem: "unknown key"}
	}
	return s.set(k, o.Source, o.Value)
}
