package config

import (
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tdf-framework/tdf"
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
func (k key) secret() bool { return k.name == "password" }

const (
	maxCount = tdf.MaxCount
	maxBytes = 1_000_000_000_000_000

	maxOutput = 256 << 20 // Redis's limit for a value is 512 MiB
)

var (
	fromZero    = spanOpts{}
	aboveZero   = spanOpts{above: true}
	zeroToInf   = spanOpts{inf: true}
	aboveOrInf  = spanOpts{above: true, inf: true}
	outputFile  = "$program/results/$worker-$taskId-$round.out"
	errorFile   = "$program/results/$worker-$taskId-$round.err"
	failOnRules = []string{string(tdf.FailOnStderr), string(tdf.FailOnExit), string(tdf.FailOnAny)}
)

// keys is the table of all keys, in the order of the documentation.
var keys = slices.Concat(redisKeys, serverKeys, workerKeys, programKeys, managerKeys, taskKeys, logKeys)

var redisKeys = []key{
	{
		"redis", "host", "localhost", host(func(s *settings) *string { return &s.redis.Host }),
		"The machine that runs Redis. In the server's file, `embedded` starts a Redis inside the server. This Redis listens on 127.0.0.1. It keeps its data in memory, and loses them when the server stops.",
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
		"redis", "tls", "False", truth(func(s *settings) *bool { return &s.redis.TLS }),
		"Connect to Redis over TLS.",
	},
	{
		"redis", "tls_ca", "", text(func(s *settings) *string { return &s.redis.TLSCA }),
		"A PEM file with the certificate authorities that TDF trusts. Empty means the system's authorities. Requires `tls=True`.",
	},
	{
		"redis", "tls_server_name", "", text(func(s *settings) *string { return &s.redis.TLSServerName }),
		"The name for which Redis's certificate must be valid. Empty means the value of `host`. Requires `tls=True`.",
	},

	{
		"tdf", "namespace", "", namespace(func(s *settings) *string { return &s.namespace }),
		"The project's name. All keys of the project in Redis begin with this name. The server, workers and managers of a project have the same namespace.",
	},
}

var serverKeys = []key{
	{
		"server", "round_duration", "1.0", duration(fromZero, func(s *settings) *time.Duration { return &s.server.RoundDuration }),
		"The server works in rounds: in each round it settles due tasks and continues the audit. This key is the longest time between the starts of two rounds. When a result arrives, the server starts a round at once. Values below 0.01 count as 0.01.",
	},
	{
		"server", "outage_grace", "30", duration(fromZero, func(s *settings) *time.Duration { return &s.server.OutageGrace }),
		"The length of the grace period after an outage. In this period, workers renew their leases, and the server declares no running task lost, timed out or expired.",
	},
	{
		"server", "audit_grace", "60", duration(fromZero, func(s *settings) *time.Duration { return &s.server.AuditGrace }),
		"How long an inconsistent task must stay unchanged before the audit repairs it.",
	},
}

var managerKeys = []key{
	{
		"manager", "round_duration", "1.0", duration(fromZero, func(s *settings) *time.Duration { return &s.manager.RoundDuration }),
		"The manager works in rounds: in each round it calls the callbacks of finished tasks. This key is the longest time between the starts of two rounds. When a task finishes, the manager starts a round at once. Values below 0.01 count as 0.01.",
	},
}

var taskKeys = []key{
	{
		"task_defaults", "start_after", "0", moment(false, func(s *settings) *tdf.Time { return &s.manager.TaskDefaults.StartAfter }),
		"No worker claims the task before this time. 0 means no limit.",
	},
	{
		"task_defaults", "end_before", "inf", moment(true, func(s *settings) *tdf.Time { return &s.manager.TaskDefaults.EndBefore }),
		"If the task is not executed by this time, it expires. `inf` means no limit.",
	},
	{
		"task_defaults", "timeout", "inf", seconds(aboveOrInf, func(s *settings) *tdf.Seconds { return &s.manager.TaskDefaults.Timeout }),
		"The longest run time of a round. `inf` means no limit.",
	},
	{
		"task_defaults", "max_fails", "0", whole(0, maxCount, func(s *settings) *int { return &s.manager.TaskDefaults.MaxFails }),
		"How many times the task runs again after a failed round.",
	},
	{
		"task_defaults", "max_timeouts", "0", whole(0, maxCount, func(s *settings) *int { return &s.manager.TaskDefaults.MaxTimeouts }),
		"How many times the task runs again after a timed out round.",
	},
	{
		"task_defaults", "max_losses", "3", whole(0, maxCount, func(s *settings) *int { return &s.manager.TaskDefaults.MaxLosses }),
		"How many times the task runs again after a lost round.",
	},
	{
		"task_defaults", "backoff", "0", backoff(fromZero, func(s *settings) *tdf.Seconds { return &s.manager.TaskDefaults.Backoff }),
		"How long the task waits before it runs again after its first failed or timed out round. 0 means no wait.",
	},
	{
		"task_defaults", "backoff_factor", "2", factor(1, tdf.MaxBackoffFactor, func(s *settings) *float64 { return &s.manager.TaskDefaults.BackoffFactor }),
		"Each further wait is longer than the last one by this factor.",
	},
	{
		"task_defaults", "backoff_max", "300", backoff(aboveZero, func(s *settings) *tdf.Seconds { return &s.manager.TaskDefaults.BackoffMax }),
		"The longest wait, before it varies by up to 20 %.",
	},
	{
		"task_defaults", "keep_finished", "inf", seconds(aboveOrInf, func(s *settings) *tdf.Seconds { return &s.manager.TaskDefaults.KeepFinished }),
		"How long a finished task stays in Redis if no manager archives it. Then the server removes it, with its outputs. `inf` means no limit.",
	},
	{
		"task_defaults", "keep_archived", "inf", seconds(zeroToInf, func(s *settings) *tdf.Seconds { return &s.manager.TaskDefaults.KeepArchived }),
		"How long an archived task stays in Redis. Then the server removes it, with its outputs. `inf` means no limit.",
	},
	{
		"task_defaults", "keep_outputs", "inf", seconds(aboveOrInf, func(s *settings) *tdf.Seconds { return &s.manager.TaskDefaults.KeepOutputs }),
		"How long the outputs of a finished task stay in Redis. Then the server removes them, and the rest of the task stays. `inf` means no limit.",
	},
	{
		"task_defaults", "unique_until", "finished", oneOf(func(s *settings) *tdf.UniqueUntil { return &s.manager.TaskDefaults.UniqueUntil }, string(tdf.UntilFinished), string(tdf.UntilArchived)),
		"When a task with a unique key gives the key back: when it has finished, or when it is archived.",
	},
	{
		"task_defaults", "queue", "", queue(func(s *settings) *string { return &s.manager.TaskDefaults.Queue }),
		"The queue of the task. Only workers that serve the queue claim the task. Empty means the queue of the workers without `queues`.",
	},
	{
		"task_defaults", "priority", "0", whole(math.MinInt32, math.MaxInt32, func(s *settings) *int { return &s.manager.TaskDefaults.Priority }),
		"Workers claim the tasks of a queue with the highest priority first.",
	},
	{
		"task_defaults", "tags", "", tags(tdf.MaxTags, func(s *settings) *[]string { return &s.manager.TaskDefaults.Tags }),
		"The tags of the task. Only workers that offer all of them claim the task.",
	},
	{
		"task_defaults", "limit_key", "", group(func(s *settings) *string { return &s.manager.TaskDefaults.LimitKey }),
		"The name of something that the task needs, such as a database. `tdf limit` limits how many tasks of a key run at once. Empty means no key.",
	},
	{
		"task_defaults", "group", "", group(func(s *settings) *string { return &s.manager.TaskDefaults.Group }),
		"The group that the task belongs to, such as a campaign or a stage. Empty means no group.",
	},
	{
		"task_defaults", "meta", "", meta(func(s *settings) *string { return &s.manager.TaskDefaults.Meta }),
		"The manager's own data about the task. Server and workers do not use it.",
	},
	{
		"task_defaults", "fail_on", "stderr", oneOf(func(s *settings) *tdf.FailOn { return &s.manager.TaskDefaults.FailOn }, failOnRules...),
		"The rule that decides whether a round failed. With `stderr`, any text on stderr is a failure. With `exit`, an exit status other than 0 is a failure. With `any`, both are failures.",
	},
	{
		"task_defaults", "add_random_start_offset", "False", truth(func(s *settings) *bool { return &s.manager.AddRandomStartOffset }),
		"Add a random part of a second to `start_after`, so that tasks opened together start in random order.",
	},
}

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
