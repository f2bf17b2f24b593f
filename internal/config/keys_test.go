package config

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tdf-framework/tdf/internal/class"
	"github.com/tdf-framework/tdf/internal/expect"
	"github.com/tdf-framework/tdf/internal/task"
)

type sample struct {
	key  string // the variable's name without envPrefix
	text string
	want any
	get  func(*settings) any
}

// samples has one element for every key: a text that is not the default, the value that this text stands for, and a
// function that reads the field of the key.
var samples = []sample{
	{"REDIS_HOST", "::1", "::1", func(s *settings) any { return s.server.Redis.Host }},
	{"REDIS_PORT", "65535", 65535, func(s *settings) any { return s.server.Redis.Port }},
	{"REDIS_USERNAME", "Ann B", "Ann B", func(s *settings) any { return s.worker.Redis.Username }},
	{"REDIS_PASSWORD", "p w", "p w", func(s *settings) any { return s.manager.Redis.Password }},
	{"REDIS_DB", "7", 7, func(s *settings) any { return s.server.Redis.DB }},
	{"REDIS_SENTINELS", "my master@a:1, [::1]:65535", []string{"my master", "a:1", "[::1]:65535"}, func(s *settings) any {
		return append([]string{s.server.Redis.Master}, s.server.Redis.Sentinels...)
	}},
	{"REDIS_SENTINEL_USERNAME", "s", "s", func(s *settings) any { return s.manager.Redis.SentinelUsername }},
	{"REDIS_SENTINEL_PASSWORD", "s w", "s w", func(s *settings) any { return s.server.Redis.SentinelPassword }},
	{"REDIS_CLUSTER", "c:1, d:2", []string{"c:1", "d:2"}, func(s *settings) any { return s.worker.Redis.Cluster }},
	{"REDIS_TLS", "yes", true, func(s *settings) any { return s.server.Redis.TLS }},
	{"REDIS_TLS_CERT", "/a/c.pem", "/a/c.pem", func(s *settings) any { return s.server.Redis.TLSCert }},
	{"REDIS_TLS_KEY", "/a/k.pem", "/a/k.pem", func(s *settings) any { return s.server.Redis.TLSKey }},
	{"REDIS_TLS_CA", "/a/ca.pem", "/a/ca.pem", func(s *settings) any { return s.server.Redis.TLSCA }},
	{"REDIS_TLS_SERVER_NAME", "r.example", "r.example", func(s *settings) any { return s.server.Redis.TLSServerName }},
	{"REDIS_REPLICAS", "2", 2, func(s *settings) any { return s.manager.Redis.Replicas.Wanted }},
	{"TDF_NAMESPACE", "Projekt-Ü:1", "Projekt-Ü:1", func(s *settings) any { return s.server.Namespace }},
	{"TDF_NAMESPACES", "N, M", []string{"N", "M"}, func(s *settings) any { return s.server.Namespaces }},
	{"SERVER_ROUND_DURATION", "0", time.Duration(0), func(s *settings) any { return s.server.RoundDuration }},
	{"SERVER_OUTAGE_GRACE", "45.5", 45500 * time.Millisecond, func(s *settings) any { return s.server.OutageGrace }},
	{"HTTP_LISTEN", "[::1]:0", "[::1]:0", func(s *settings) any { return s.http.Listen }},
	{"WORKER_API", "https://TDF.example.org:7379", "https://tdf.example.org:7379", func(s *settings) any { return s.worker.API.URL }},
	{"WORKER_API_TOKEN_FILE", "/t", "/t", func(s *settings) any { return s.worker.API.TokenFile }},
	{"WORKER_API_CA", "/ca.pem", "/ca.pem", func(s *settings) any { return s.worker.API.CA }},
	{"WORKER_METRICS_LISTEN", ":9101", ":9101", func(s *settings) any { return s.worker.MetricsListen }},
	{"HTTP_TRUSTED_PROXIES", "10.0.0.7, 10.1.2.3/16 fd00::1", "[10.0.0.7/32 10.1.0.0/16 fd00::1/128]", func(s *settings) any { return fmt.Sprint(s.http.Proxies) }},
	{"HTTP_HOSTS", "A.example, HTTPS://B:8443, c", []string{"https://b:8443", "a.example", "b", "c"}, func(s *settings) any {
		return append([]string{s.http.Public}, s.http.Hosts...)
	}},
	{"HTTP_TLS_CERT", "/c.pem", "/c.pem", func(s *settings) any { return s.http.TLSCert }},
	{"HTTP_BLOBS", "/blobs", "/blobs", func(s *settings) any { return s.http.Blobs }},
	{"HTTP_USERS", "/users", "/users", func(s *settings) any { return s.http.Users }},
	{"HTTP_TLS_KEY", "/k.pem", "/k.pem", func(s *settings) any { return s.http.TLSKey }},
	{"HTTP_CLIENT_CA", "/ca.pem", "/ca.pem", func(s *settings) any { return s.http.ClientCA }},
	{"HTTP_INSECURE", "yes", true, func(s *settings) any { return s.http.Insecure }},
	{"HTTP_TASKMASTER", "/", "/", func(s *settings) any { return s.http.Taskmaster }},
	{"HTTP_TASKSTORE", "/ts", "/ts", func(s *settings) any { return s.http.TaskStore }},
	{"HTTP_SKULD", "/old/skuld", "/old/skuld", func(s *settings) any { return s.http.Skuld }},
	{"HTTP_TASKMASTER_STALE", "2", 2 * time.Second, func(s *settings) any { return s.http.TaskmasterStale }},
	{"HTTP_TASKMASTER_DEAD", "60", time.Minute, func(s *settings) any { return s.http.TaskmasterDead }},
	{"NOTIFY_WEBHOOK", "https://hook.example/x?y=1", "https://hook.example/x?y=1", func(s *settings) any { return s.notify.Webhook }},
	{"NOTIFY_WEBHOOK_SECRET_FILE", "/s", "/s", func(s *settings) any { return s.notify.WebhookSecretFile }},
	{"NOTIFY_PRIVATE_ADDRESSES", "True", true, func(s *settings) any { return s.notify.PrivateAddresses }},
	{"NOTIFY_MAIL_TO", "a@b.example, c@d.example", []string{"a@b.example", "c@d.example"}, func(s *settings) any { return s.notify.MailTo }},
	{"NOTIFY_MAIL_FROM", "tdf@b.example", "tdf@b.example", func(s *settings) any { return s.notify.MailFrom }},
	{"NOTIFY_MAIL_SERVER", "u@x@mail.example:587", "u@x mail.example:587", func(s *settings) any { return s.notify.MailUser + " " + s.notify.MailServer }},
	{"NOTIFY_MAIL_PASSWORD_FILE", "/p", "/p", func(s *settings) any { return s.notify.MailPasswordFile }},
	{"WORKER_DIRECTORY", "/var/lib/t d f", "/var/lib/t d f", func(s *settings) any { return s.worker.Directory }},
	{"WORKER_TASK_OUTPUT_FILENAME", "$worker$round", "$worker$round", func(s *settings) any { return s.worker.TaskOutputFilename }},
	{"WORKER_TASK_ERROR_FILENAME", "e/$taskId.e", "e/$taskId.e", func(s *settings) any { return s.worker.TaskErrorFilename }},
	{"WORKER_QUEUES", "a:3, b", []class.QueueShare{{Queue: "a", Weight: 3}, {Queue: "b"}}, func(s *settings) any { return s.worker.Queues }},
	{"WORKER_TAGS", "region:eu, big ssd", []string{"region:eu", "big ssd"}, func(s *settings) any { return s.worker.Tags }},
	{"WORKER_RESOURCES", "auto gpus=1", "&{true gpus=1}", func(s *settings) any { return fmt.Sprint(s.worker.Resources) }},
	{"WORKER_CONCURRENCY", "auto", 0, func(s *settings) any { return s.worker.Concurrency }},
	{"WORKER_SLEEP_AFTER_SUCCESS", "1", time.Second, func(s *settings) any { return s.worker.SleepAfterSuccess }},
	{"WORKER_SLEEP_AFTER_FAILURE", ".25", 250 * time.Millisecond, func(s *settings) any { return s.worker.SleepAfterFailure }},
	{"WORKER_SLEEP_AFTER_NO_PROCESS_CLAIMED", "3", 3 * time.Second, func(s *settings) any { return s.worker.SleepAfterNoProcessClaimed }},
	{"WORKER_LEASE", "0.5", 500 * time.Millisecond, func(s *settings) any { return s.worker.Lease }},
	{"WORKER_GRACE", "inf", Forever, func(s *settings) any { return s.worker.Grace }},
	{"WORKER_KILL_GRACE", "0", time.Duration(0), func(s *settings) any { return s.worker.KillGrace }},
	{"WORKER_MAX_OUTPUT", "0", int64(0), func(s *settings) any { return s.worker.MaxOutput }},
	{"WORKER_MAX_FETCH", "1", int64(1), func(s *settings) any { return s.worker.MaxFetch }},
	{"WORKER_MAX_PROGRAM_BYTES", "1000000000000000", int64(1e15), func(s *settings) any { return s.worker.MaxProgramBytes }},
	{"WORKER_ENV", "API_URL, _x2  CUDA_HOME", []string{"API_URL", "_x2", "CUDA_HOME"}, func(s *settings) any { return s.worker.Env }},
	{"WORKER_ENV_FILE", "/etc/t d f/$program.env", "/etc/t d f/$program.env", func(s *settings) any { return s.worker.EnvFile }},
	{"WORKER_USER", "nobody", "nobody", func(s *settings) any { return s.worker.User }},
	{"WORKER_MEMORY", "1073741824", int64(1 << 30), func(s *settings) any { return s.worker.Memory }},
	{"WORKER_ON_LEASE_LOST", "end", "end", func(s *settings) any { return s.worker.OnLeaseLost }},
	{"WORKER_KEEP_PROGRAMS", "inf", Forever, func(s *settings) any { return s.worker.KeepPrograms }},
	{"WORKER_GROUP", "night/a b", "night/a b", func(s *settings) any { return s.worker.Group }},
	{"MANAGER_ROUND_DURATION", "2", 2 * time.Second, func(s *settings) any { return s.manager.RoundDuration }},
	{"TASK_DEFAULTS_START_AFTER", "1700000000.25", task.Time(1700000000.25), func(s *settings) any { return s.manager.TaskDefaults.StartAfter }},
	{"TASK_DEFAULTS_END_BEFORE", "1800000000", task.Time(1800000000), func(s *settings) any { return s.manager.TaskDefaults.EndBefore }},
	{"TASK_DEFAULTS_TIMEOUT", "90", task.Seconds(90), func(s *settings) any { return s.manager.TaskDefaults.Timeout }},
	{"TASK_DEFAULTS_MAX_FAILS", "1", 1, func(s *settings) any { return s.manager.TaskDefaults.MaxFails }},
	{"TASK_DEFAULTS_MAX_TIMEOUTS", "2", 2, func(s *settings) any { return s.manager.TaskDefaults.MaxTimeouts }},
	{"TASK_DEFAULTS_MAX_LOSSES", "0", 0, func(s *settings) any { return s.manager.TaskDefaults.MaxLosses }},
	{"TASK_DEFAULTS_BACKOFF", "0.5", task.Seconds(0.5), func(s *settings) any { return s.manager.TaskDefaults.Backoff }},
	{"TASK_DEFAULTS_BACKOFF_FACTOR", "1.5", 1.5, func(s *settings) any { return s.manager.TaskDefaults.BackoffFactor }},
	{"TASK_DEFAULTS_BACKOFF_MAX", "60", task.Seconds(60), func(s *settings) any { return s.manager.TaskDefaults.BackoffMax }},
	{"TASK_DEFAULTS_KEEP_FINISHED", "60", task.Seconds(60), func(s *settings) any { return s.manager.TaskDefaults.KeepFinished }},
	{"TASK_DEFAULTS_KEEP_ARCHIVED", "0", task.Seconds(0), func(s *settings) any { return s.manager.TaskDefaults.KeepArchived }},
	{"TASK_DEFAULTS_KEEP_OUTPUTS", "60", task.Seconds(60), func(s *settings) any { return s.manager.TaskDefaults.KeepOutputs }},
	{"TASK_DEFAULTS_GROUP", "stage 1", "stage 1", func(s *settings) any { return s.manager.TaskDefaults.Group }},
	{"TASK_DEFAULTS_META", `{"a": " ; #"}`, `{"a": " ; #"}`, func(s *settings) any { return s.manager.TaskDefaults.Meta }},
	{"TASK_DEFAULTS_FAIL_ON", "any", task.FailOnAny, func(s *settings) any { return s.manager.TaskDefaults.FailOn }},
	{"TASK_DEFAULTS_ADD_RANDOM_START_OFFSET", "ON", true, func(s *settings) any { return s.manager.AddRandomStartOffset }},
	{"LOG_LEVEL", "Debug", slog.LevelDebug, func(s *settings) any { return s.worker.Log.Level }},
	{"LOG_FORMAT", "json", "json", func(s *settings) any { return s.manager.Log.Format }},
}

func sampleOf(t fataler, k key) sample {
	t.Helper()
	for _, s := range samples {
		if envPrefix+s.key == k.env() {
			return s
		}
	}
	t.Fatalf("no sample for %s", k.env())
	return sample{}
}

func TestEveryKeyByFileAndEnvironment(t *testing.T) {
	expect.Len(t, samples, len(keys), "samples for … keys")
	for _, k := range keys {
		t.Run(k.env(), func(t *testing.T) {
			s := sampleOf(t, k)
			preset := s.get(mustLoad(t, "[tdf]\nnamespace=N"))
			expect.MustTrue(t, !cmp.Equal(preset, s.want), "the sample", s.want, "is the default; use another value")
			inFile := s.get(mustLoad(t, fileOf(k, s.text), neededVariables(k)...))
			inEnv := s.get(mustLoad(t, "[tdf]\nnamespace=N", append(neededVariables(k), k.env()+"="+s.text)...))
			expect.Equal(t, cmp.Diff([]any{s.want, s.want}, []any{inFile, inEnv}), "", "by file, by environment (-want +got")
		})
	}
}

// Any set of keys has the same effect in a file, in the environment, and in an environment that overrides a file.
func TestFileAndEnvironmentAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		inFile := map[string][]string{"tdf": {"namespace=N"}}
		presets := map[string][]string{"tdf": {"namespace=N"}}
		environ := []string{}
		var chosen []sample
		for _, k := range keys {
			if k.name == "namespace" || neededVariables(k) != nil || !rapid.Bool().Draw(t, k.env()) {
				continue
			}
			s := sampleOf(t, k)
			chosen = append(chosen, s)
			inFile[k.section] = append(inFile[k.section], k.name+"="+s.text)
			presets[k.section] = append(presets[k.section], k.name+" = "+k.preset)
			environ = append(environ, k.env()+"="+s.text)
		}
		for _, s := range []*settings{
			mustLoad(t, render(inFile)),
			mustLoad(t, "[tdf]\nnamespace=N", environ...),
			mustLoad(t, render(presets), environ...),
		} {
			for _, c := range chosen {
				if got := c.get(s); !cmp.Equal(got, c.want) {
					t.Fatalf("%s is %v, want %v", c.key, got, c.want)
				}
			}
		}
	})
}

func render(sections map[string][]string) string {
	var b strings.Builder
	for name, lines := range sections {
		b.WriteString("[" + name + "]\n" + strings.Join(lines, "\n") + "\n")
	}
	return b.String()
}

func TestDefaults(t *testing.T) {
	clearEnvironment(t)
	redis, log := Redis{Host: "localhost", Port: 6379}, Log{Level: slog.LevelInfo, Format: "text"}
	server := expect.Result(DefaultServer("N")).Value(t)
	worker := expect.Result(DefaultWorker("N")).Value(t)
	manager := expect.Result(DefaultManager("N")).Value(t)
	tool := expect.Result(LoadTool("", nil)).Value(t)
	expect.Equal(t, cmp.Diff(HTTP{
		TaskmasterStale: 30 * time.Second, TaskmasterDead: 2 * time.Minute,
	}, tool.HTTP), "", "[http]")
	want := []any{
		Server{Redis: redis, Namespace: "N", Log: log, RoundDuration: time.Second, OutageGrace: 30 * time.Second},
		Worker{
			Redis: redis, Namespace: "N", Log: log, Directory: ".",
			TaskOutputFilename:         "$program/results/$worker-$taskId-$round.out",
			TaskErrorFilename:          "$program/results/$worker-$taskId-$round.err",
			SleepAfterFailure:          500 * time.Millisecond,
			SleepAfterNoProcessClaimed: 2 * time.Second,
			Lease:                      30 * time.Second, OnLeaseLost: "continue", Grace: 10 * time.Second, KillGrace: 5 * time.Second, FetchTimeout: 30 * time.Minute,
			Concurrency: 1, MaxCheckpoint: 1 << 20, MaxResult: 1 << 20, MaxUpdates: 1 << 20, MaxFetch: 16 << 20,
			KeepPrograms: 7 * 24 * time.Hour,
			MaxOutput:    1 << 20, MaxCopyBytes: 1 << 30,
			MaxProgramBytes: 1 << 30,
		},
		Manager{Redis: redis, Namespace: "N", Log: log, RoundDuration: time.Second, TaskDefaults: task.Defaults("", "", "")},
	}
	expect.Equal(t, cmp.Diff(want, []any{server, worker, manager}), "", "defaults (-want +got")
}

// If two keys had the same environment variable, the variable could set only one of the keys.
func TestVariablesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range keys {
		expect.True(t, !seen[k.env()], "two keys are set by", k.env())
		seen[k.env()] = true
	}
}
