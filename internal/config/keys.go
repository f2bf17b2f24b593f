package config

import (
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/tdf-framework/tdf/internal/task"
)

// A key describes a configuration key: its default, its valid values and its documentation.
type key struct {
	section, name string
	preset        string // the default, as written in a file; "" for [tdf] namespace, which is required
	kind          kind
	meaning       string // the key's description in docs/configuration.md
}

// env returns the environment variable that sets the key.
func (k key) env() string { return envPrefix + strings.ToUpper(k.section+"_"+k.name) }

// verbatim reports whether # and ; belong to the key's value. In the values of other keys, they are errors.
func (k key) verbatim() bool { return k.secret() || k.name == "meta" }

// secret reports whether the value must never be shown.
func (k key) secret() bool { return strings.HasSuffix(k.name, "password") }

const (
	maxCount = task.MaxCount
	maxBytes = 1_000_000_000_000_000

	maxOutput = 256 << 20 // Redis's limit for a value is 512 MiB
)

var (
	fromZero   = spanOpts{}
	aboveZero  = spanOpts{above: true}
	zeroToInf  = spanOpts{inf: true}
	aboveOrInf = spanOpts{above: true, inf: true}
	outputFile = "$program/results/$worker-$taskId-$round.out"
	errorFile  = "$program/results/$worker-$taskId-$round.err"
)

// keys is the table of all keys, in the order of the documentation.
var keys = slices.Concat(redisKeys, serverKeys, httpKeys, notifyKeys, workerKeys, programKeys, managerKeys, taskKeys,
	logKeys)

var redisKeys = []key{
	{
		"redis", "host", "localhost", host(func(s *settings) *string { return &s.redis.Host }),
		"The machine that runs Redis, or the path of its socket on this machine. In the server's file, `embedded` " +
			"starts a Redis inside the server. This Redis listens on 127.0.0.1. It keeps its data in memory, and " +
			"loses them when the server stops.",
	},
	{
		"redis", "port", "6379", whole(1, 65535, func(s *settings) *int { return &s.redis.Port }),
		"The port of Redis.",
	},
	{
		"redis", "username", "", text(func(s *settings) *string { return &s.redis.Username }),
		"The name of the Redis user (ACL). Empty means Redis's user `default`.",
	},
	{
		"redis", "password", "None", password(func(s *settings) *string { return &s.redis.Password }),
		"The password of Redis. `None` or empty means no password. See \"Passwords\".",
	},
	{
		"redis", "db", "0", whole(0, maxCount, func(s *settings) *int { return &s.redis.DB }),
		"The number of the Redis database.",
	},
	{
		"redis", "sentinels", "", sentinels(),
		"The name of Redis at its Sentinels, and their addresses: `tdf@10.0.0.1:26379,10.0.0.2:26379`. They know the " +
			"address of Redis. Empty means that `host` and `port` are this address. See " +
			"[Sentinel](operations.md#sentinel).",
	},
	{
		"redis", "sentinel_username", "", text(func(s *settings) *string { return &s.redis.SentinelUsername }),
		"The name of the sentinels' user (ACL). Empty means their user `default`.",
	},
	{
		"redis", "sentinel_password", "None", password(func(s *settings) *string { return &s.redis.SentinelPassword }),
		"The password of the sentinels. `None` or empty means no password.",
	},
	{
		"redis", "cluster", "", bind(wantAddresses, parseAddresses, func(s *settings) *[]string {
			return &s.redis.Cluster
		}),
		"The addresses of nodes of a Redis Cluster. Empty means that Redis is no cluster. TDF learns the addresses of " +
			"the other nodes from these. See [Redis Cluster](operations.md#redis-cluster).",
	},
	{
		"redis", "tls", "False", truth(func(s *settings) *bool { return &s.redis.TLS }),
		"Connect to Redis, and to the sentinels, over TLS.",
	},
	{
		"redis", "tls_ca", "", text(func(s *settings) *string { return &s.redis.TLSCA }),
		"A PEM file with the certificate authorities that TDF trusts. Empty means the system's authorities. " +
			"Each new connection reads the file again. Requires `tls=True`.",
	},
	{
		"redis", "tls_cert", "", text(func(s *settings) *string { return &s.redis.TLSCert }),
		"A PEM file with the certificate by which Redis and the sentinels know this client (`tls-auth-clients`). " +
			"Requires `tls=True` and `tls_key`.",
	},
	{
		"redis", "tls_key", "", text(func(s *settings) *string { return &s.redis.TLSKey }),
		"A PEM file with the key of `tls_cert`.",
	},
	{
		"redis", "tls_server_name", "", text(func(s *settings) *string { return &s.redis.TLSServerName }),
		"The name for which the certificates of Redis and the sentinels must be valid. Empty means the host of the " +
			"address. Requires `tls=True`.",
	},

	{
		"redis", "replicas", "0", whole(0, 10, func(s *settings) *int { return &s.redis.Replicas.Wanted }),
		"How many replicas of Redis must confirm each change that a call acknowledges, before the call counts as " +
			"done. A call waits for them for a second. See \"Confirmed writes\" in guarantees.md.",
	},

	{
		"tdf", "namespace", "", namespace(func(s *settings) *string { return &s.namespace }),
		"The project's name. All keys of the project in Redis begin with this name. The server, workers and " +
			"managers of a project have the same namespace.",
	},
	{
		"tdf", "namespaces", "", namespaces(func(s *settings) *[]string { return &s.namespaces }),
		"Several namespaces that work as one, in the place of `namespace`. See [shards.md](shards.md).",
	},
}

var serverKeys = []key{
	{
		"server", "round_duration", "1.0", duration(fromZero, func(s *settings) *time.Duration {
			return &s.server.RoundDuration
		}),
		"The server works in rounds: in each round it settles due tasks and continues the audit. This key is the " +
			"longest time between the starts of two rounds. When a task needs the server, it starts a round at once. " +
			"Values below 0.01 count as 0.01.",
	},
	{
		"server", "outage_grace", "30", duration(fromZero, func(s *settings) *time.Duration {
			return &s.server.OutageGrace
		}),
		"The length of the grace period after an outage. In this period, workers renew their leases, and the server " +
			"declares no running task lost, timed out or expired.",
	},
}

var managerKeys = []key{
	{
		"manager", "round_duration", "1.0", duration(fromZero, func(s *settings) *time.Duration {
			return &s.manager.RoundDuration
		}),
		"The manager works in rounds: in each round it calls the callbacks of finished tasks. This key is the " +
			"longest time between the starts of two rounds. When a task finishes, the manager starts a round at " +
			"once. Values below 0.01 count as 0.01.",
	},
}

// taskKeys come from the table of the properties of tasks.
var taskKeys = func() (all []key) {
	for i := range task.PropertyTable {
		p := &task.PropertyTable[i]
		if p.Meaning == "" {
			continue
		}
		set := func(s *settings, text string) bool { return p.Set(&s.manager.TaskDefaults, text) == nil }
		all = append(all, key{"task_defaults", p.Name, p.Preset(), kind{p.Want, set}, p.Meaning})
	}
	return append(all, key{
		"task_defaults", "add_random_start_offset", "False", truth(func(s *settings) *bool {
			return &s.manager.AddRandomStartOffset
		}),
		"Add a random part of a second to `start_after`, so that tasks opened together start in random order.",
	})
}()

var logKeys = []key{
	{
		"log", "level", "info", level(func(s *settings) *slog.Level { return &s.log.Level }),
		"The lowest level of the messages that the component logs.",
	},
	{
		"log", "format", "text", oneOf(func(s *settings) *string { return &s.log.Format }, "text", "json"),
		"The format of a log message. With `text`, it is one line of text. With `json`, it is one JSON object.",
	},
}

// find returns the key with this section and name, or nil if the key is unknown.
func find(section, name string) *key {
	i := slices.IndexFunc(keys, func(k key) bool { return k.section == section && k.name == name })
	if i < 0 {
		return nil
	}
	return &keys[i]
}

// sections returns the names of all sections.
func sections() []string {
	var all []string
	for _, k := range keys {
		if !slices.Contains(all, k.section) {
			all = append(all, k.section)
		}
	}
	return all
}

// namesIn returns the names of a section's keys.
func namesIn(section string) []string {
	var names []string
	for _, k := range keys {
		if k.section == section {
			names = append(names, k.name)
		}
	}
	return names
}
