package config

import (
	"os"
	"slices"
	"strings"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/lazy"
	"github.com/tdf-framework/tdf/internal/task"
)

// settings holds the values of all keys of all components.
type settings struct {
	redis     Redis
	namespace string
	// several namespaces, of which namespace is one; none means only namespace
	namespaces []string
	log        Log
	server     Server
	http       HTTP
	notify     Notify
	worker     Worker
	slots      divided[int]                  // the worker's key concurrency
	offers     divided[*class.ResourceOffer] // the worker's key resources
	manager    Manager

	source string            // the configuration file, for errors about missing keys
	from   map[string]string // where each key's value comes from, by the name of the key's environment variable
}

func loadFile(path string, overrides ...Override) (*settings, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return load(path, data, os.Environ(), overrides...)
}

func load(path string, data []byte, environ []string, overrides ...Override) (*settings, error) {
	s := defaults(path)
	if err := s.read(data); err != nil {
		return nil, err
	}
	return s, s.finish(environ, overrides...)
}

// read sets the keys that the text of a file contains.
func (s *settings) read(data []byte) error {
	entries, err := parse(s.source, data)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := s.setFromFile(e); err != nil {
			return err
		}
	}
	return nil
}

// loadNamespace returns the settings of a component that has a namespace, but no configuration file.
func loadNamespace(namespace string) (*settings, error) {
	s := defaults(noFile)
	if err := s.set(find("tdf", "namespace"), s.source, namespace); err != nil {
		return nil, err
	}
	return s, s.merge(os.Environ())
}

// noFile is the source of the defaults.
const noFile = "(no file)"

func defaults(source string) *settings {
	s := &settings{source: source, from: map[string]string{}}
	s.manager.TaskDefaults = task.Defaults("", "", "")
	s.worker.setBounds()
	for _, k := range keys {
		if k.preset != "" && !k.kind.set(s, k.preset) {
			panic("config: the default of " + k.env() + " is not " + k.kind.want)
		}
	}
	return s
}

var inlineComment = lazy.Regexp(`(^|\s)[;#]`)

func (s *settings) setFromFile(e entry) error {
	k := find(e.section, e.name)
	if !k.verbatim() && inlineComment().MatchString(e.value) {
		return &Error{
			Source: s.source, Section: k.section, Key: k.name,
			Problem: quote(e.value) + " ends in a comment; move the comment to its own line; expected " + k.kind.want,
		}
	}
	return s.set(k, s.source, e.value)
}

func (s *settings) set(k *key, source, value string) error {
	s.from[k.env()] = source
	if k.kind.set(s, value) {
		return nil
	}
	found := quote(value)
	if k.secret() {
		found = "the value"
	}
	return s.fault(k.section, k.name, found+" is not "+k.kind.want)
}

// isSet reports whether the file, the environment or an override sets a key.
func (s *settings) isSet(section, name string) bool {
	_, ok := s.from[find(section, name).env()]
	return ok
}

// fault returns an error about a key. The error names the source of the key's value.
func (s *settings) fault(section, name, problem string) error {
	source, ok := s.from[find(section, name).env()]
	if !ok {
		source = s.source
	}
	return &Error{Source: source, Section: section, Key: name, Problem: problem}
}

// finish applies the environment variables and then the overrides, and checks the result.
func (s *settings) finish(environ []string, overrides ...Override) error {
	if err := s.merge(environ, overrides...); err != nil {
		return err
	}
	return s.check()
}

// merge applies the environment variables and then the overrides. It does not check whether keys contradict each other:
// without a file, a key of the environment may belong to a key that a Go program sets in other ways.
func (s *settings) merge(environ []string, overrides ...Override) error {
	if err := s.setFromEnvironment(environ); err != nil {
		return err
	}
	for _, o := range overrides {
		if err := s.override(o); err != nil {
			return err
		}
	}
	switch {
	case len(s.namespaces) == 0:
	case s.namespace == "" || !s.isSet("tdf", "namespace"):
		s.namespace = s.namespaces[0]
	case !slices.Contains(s.namespaces, s.namespace):
		return s.fault("tdf", "namespaces", "lacks namespace, "+s.namespace+"; expected only one of the two keys")
	}
	s.worker.OutputFilenameSet, s.worker.ErrorFilenameSet = s.isSet("worker", "task_output_filename"),
		s.isSet("worker", "task_error_filename")
	s.server.Redis, s.server.Namespace, s.server.Log = s.redis, s.namespace, s.log
	s.worker.Redis, s.worker.Namespace, s.worker.Log = s.redis, s.namespace, s.log
	s.server.Namespaces = s.namespaces
	s.worker.Concurrency, s.worker.Resources = s.slots.of(s.namespace), s.offers.of(s.namespace)
	s.manager.Redis, s.manager.Namespace, s.manager.Log = s.redis, s.namespace, s.log
	return nil
}

// check returns an error if a required key is missing, or if two keys contradict each other.
func (s *settings) check() error {
	switch {
	case s.namespace == "":
		return s.fault("tdf", "namespace", "missing; expected "+find("tdf", "namespace").kind.want)
	case s.redis.TLSCA != "" && !s.redis.TLS:
		return s.fault("redis", "tls_ca", "is set but tls is False; expected tls=True, or no tls_ca")
	case s.redis.TLSCert != "" && !s.redis.TLS:
		return s.fault("redis", "tls_cert", "is set but tls is False; expected tls=True, or no tls_cert")
	case (s.redis.TLSCert == "") != (s.redis.TLSKey == ""):
		return s.fault("redis", "tls_key", "is set without tls_cert, or missing; expected both, or none")
	case s.redis.TLSServerName != "" && !s.redis.TLS:
		return s.fault("redis", "tls_server_name", "is set but tls is False; expected tls=True, or no tls_server_name")
	case len(s.redis.Sentinels) > 0 && s.redis.Host != find("redis", "host").preset:
		return s.fault("redis", "host", "is set together with sentinels; expected one of them")
	case len(s.redis.Cluster) > 0 && len(s.redis.Sentinels) > 0:
		return s.fault("redis", "cluster", "is set together with sentinels; expected one of them")
	case len(s.redis.Cluster) > 0 && s.redis.Host != find("redis", "host").preset:
		return s.fault("redis", "host", "is set together with cluster; expected one of them")
	case len(s.redis.Cluster) > 0 && s.redis.DB != 0:
		return s.fault("redis", "db", "is set together with cluster, which has only one database; expected 0")
	case s.redis.refusesNamespaces(s.namespaces...) != "":
		return s.fault("tdf", "namespaces", s.redis.refusesNamespaces(s.namespaces...))
	case s.redis.refusesNamespaces(s.namespace) != "":
		return s.fault("tdf", "namespace", s.redis.refusesNamespaces(s.namespace))
	case s.redis.TLS && (s.redis.Embedded() || isSocket(s.redis.Host)):
		return s.fault("redis", "tls", "the embedded Redis, or one on a socket, has no TLS; expected False")
	case s.redis.Embedded() && s.redis.Replicas.Wanted > 0:
		return s.fault("redis", "replicas", "the embedded Redis has no replicas; expected 0")
	case s.manager.TaskDefaults.EndBefore <= s.manager.TaskDefaults.StartAfter:
		return s.fault("task_defaults", "end_before",
			"not after start_after, so that no task could run; expected a later time, or inf")
	}
	if err := s.checkHTTP(); err != nil {
		return err
	}
	return s.checkNotify()
}

func (s *settings) forWorker() (Worker, error) {
	if err := s.needRealRedis(); err != nil {
		return Worker{}, err
	}
	if err := s.checkAPI(); err != nil {
		return Worker{}, err
	}
	return s.forNamespaces()
}

func (s *settings) forManager() (Manager, error) {
	if err := s.needRealRedis(); err != nil {
		return Manager{}, err
	}
	if len(s.namespaces) > 1 {
		return Manager{}, s.fault("tdf", "namespaces", "a manager works in one namespace; expected namespace")
	}
	return s.manager, nil
}

func (s *settings) needRealRedis() error {
	if !s.redis.Embedded() {
		return nil
	}
	return s.fault("redis", "host",
		`"embedded" is only for the server; expected the address of Redis, such as 127.0.0.1`)
}

const envPrefix = "TDF_CFG_"

// setFromEnvironment sets the keys from the environment variables in environ ("NAME=value"). The variables are sorted,
// so that the same environment always causes the same error.
func (s *settings) setFromEnvironment(environ []string) error {
	for _, variable := range slices.Sorted(slices.Values(environ)) {
		name, value, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, envPrefix) {
			continue
		}
		i := slices.IndexFunc(keys, func(k key) bool { return k.env() == name })
		if i < 0 {
			return &Error{Source: name, Problem: "unknown key; expected " + envPrefix +
				"$SECTION_$KEY in upper case, such as " + keys[0].env()}
		}
		if err := s.set(&keys[i], name, value); err != nil {
			return err
		}
	}
	return nil
}
