package config

import (
	"time"

	"github.com/tdf-framework/tdf/internal/class"
)

// maxWorkerTags is the largest number of tags that a worker offers.
const maxWorkerTags = 256

var workerKeys = []key{
	{
		"worker", "api", "", origin(func(s *settings) *string { return &s.worker.API.URL }),
		"Work [over the HTTP API](remote-workers.md) at this address, and not with Redis. The file must then have no " +
			"section `[redis]`. Without TLS, the address must be a loopback address. Requires `api_token_file`.",
	},
	{
		"worker", "api_token_file", "", text(func(s *settings) *string { return &s.worker.API.TokenFile }),
		"The file of the token for the API, which has the role worker. Only its owner may be able to use it. The " +
			"worker reads it for each call, so that you can replace the token.",
	},
	{
		"worker", "api_ca", "", text(func(s *settings) *string { return &s.worker.API.CA }),
		"A PEM file with the certificate authorities that the worker trusts for the API. Empty means the system's " +
			"authorities.",
	},
	{
		"worker", "api_pin", "", fingerprint(func(s *settings) *string { return &s.worker.API.Pin }),
		"The SHA-256 fingerprint of the API's certificate, as `openssl x509 -fingerprint -sha256` prints it. The " +
			"worker then trusts this certificate alone, and no authority. Not together with `api_ca`.",
	},
	{
		"worker", "directory", ".", path(func(s *settings) *string { return &s.worker.Directory }),
		"The working directory. Each program has a directory below it. A relative path is relative to the directory " +
			"in which the worker was started.",
	},
	{
		"worker", "task_output_filename", outputFile, filename(func(s *settings) *string {
			return &s.worker.TaskOutputFilename
		}),
		"The file for a round's stdout. A relative path is relative to the working directory. The worker replaces " +
			"`$program`, `$worker`, `$taskId` and `$round` by their values, and with several `namespaces`, `$taskId` by " +
			"NAMESPACE-ID. If the file exists, the new file's name " +
			"gets a number: `x~2.out`. If the file or the environment sets this key, the worker keeps the file " +
			"of every round. Otherwise it keeps the file only if Redis does not hold the whole output.",
	},
	{
		"worker", "task_error_filename", errorFile, filename(func(s *settings) *string {
			return &s.worker.TaskErrorFilename
		}),
		"The file for a round's stderr. The same rules apply as for `task_output_filename`. Each of the two keys " +
			"decides only about its own file.",
	},
	{
		"worker", "queues", "", queues(func(s *settings) *[]class.QueueShare { return &s.worker.Queues }),
		"The queues whose tasks the worker claims, in this order. With weights, such as `a:3,b:1`, the queues take " +
			"turns. `default` is the queue of the tasks without a queue. Empty means only this queue.",
	},
	{
		"worker", "tags", "", tags(maxWorkerTags, func(s *settings) *[]string { return &s.worker.Tags }),
		"The tags that the worker offers. It claims a task only if it offers all tags of the task.",
	},
	{
		"worker", "group", "", group(func(s *settings) *string { return &s.worker.Group }),
		"The worker claims only tasks of this group (campaign) that were opened with `by_group=yes`. Empty means " +
			"the tasks of all groups, and those without a group.",
	},
	{
		"worker", "concurrency", "1", slots(func(s *settings) *int { return &s.worker.Concurrency }),
		"The number of slots: how many programs run at once. `auto` means one slot for each core that the worker " +
			"may use (affinity, quota of its cgroup). With `resources`, it " +
			"bounds only the tasks that ask for nothing.",
	},
	{
		"worker", "resources", "none", resources(func(s *settings) **class.ResourceOffer { return &s.worker.Resources }),
		"What the worker offers to tasks that ask for [resources](resources.md): `none`, `auto` (the cores, memory " +
			"and GPUs of the machine), or amounts such as `cpus=8 memory=16G gpus=2 licence=1`. After `auto`, amounts " +
			"replace or add to what the machine has. A task that asks for nothing then takes one of the cpus. Not over " +
			"the HTTP API.",
	},
	{
		"worker", "sleep_after_success", "0", duration(fromZero, func(s *settings) *time.Duration {
			return &s.worker.SleepAfterSuccess
		}),
		"The pause of a slot after a successful round.",
	},
	{
		"worker", "sleep_after_failure", "0.5", duration(fromZero, func(s *settings) *time.Duration {
			return &s.worker.SleepAfterFailure
		}),
		"The pause of a slot after a failed round.",
	},
	{
		"worker", "sleep_after_no_process_claimed", "2.0", duration(fromZero, func(s *settings) *time.Duration {
			return &s.worker.SleepAfterNoProcessClaimed
		}),
		"The longest time after which an idle worker tries again to claim tasks. A new task wakes the worker " +
			"earlier. 0 means no wait.",
	},
	{
		"worker", "lease", "30", duration(spanOpts{least: 100 * time.Millisecond}, func(s *settings) *time.Duration {
			return &s.worker.Lease
		}),
		"How long a claim, or the worker's name, holds without a renewal. The worker renews both whenever a third " +
			"of this time has passed. If the lease of a running task has run out, the task is lost.",
	},
	{
		"worker", "remember", "604800", duration(aboveZero, func(s *settings) *time.Duration {
			return &s.worker.Remember
		}),
		"How long Redis remembers the worker after its last heartbeat, at least for three leases. `tdf workers " +
			"--all` shows workers that have ended until then.",
	},
	{
		"worker", "on_lease_lost", "continue", oneOf(func(s *settings) *string {
			return &s.worker.OnLeaseLost
		}, "continue", "end"),
		"What the worker does if the lease of a running program runs out before a renewal. With `continue`, the " +
			"program runs on. With `end`, the worker ends the program and releases the task.",
	},
	{
		"worker", "grace", "10", duration(zeroToInf, func(s *settings) *time.Duration { return &s.worker.Grace }),
		"How long running programs may continue after the worker's first signal to stop. After this time, the " +
			"worker ends them and releases their tasks.",
	},
	{
		"worker", "kill_grace", "5", duration(fromZero, func(s *settings) *time.Duration {
			return &s.worker.KillGrace
		}),
		"The time between SIGTERM and SIGKILL when the worker ends a program.",
	},
	{
		"worker", "time_limit", "0", duration(fromZero, func(s *settings) *time.Duration {
			return &s.worker.TimeLimit
		}),
		"How long the worker may run. It stops early enough to end within this time: `grace` + `kill_grace` + 12 s " +
			"before, it claims nothing more. For workers in the jobs of a [cluster](clusters.md), `--time-limit` of " +
			"`tdf-worker` sets this key. 0 means no limit.",
	},
	{
		"worker", "idle_timeout", "0", duration(fromZero, func(s *settings) *time.Duration {
			return &s.worker.IdleTimeout
		}),
		"After this time without a running round and without a claimed task, the worker ends with exit status 0. " +
			"`--idle-timeout` of `tdf-worker` sets this key. 0 means that it waits without a limit.",
	},
	{
		"worker", "fetch_timeout", "600", duration(aboveZero, func(s *settings) *time.Duration {
			return &s.worker.FetchTimeout
		}),
		"The longest time for fetching a program. This time includes unpacking and `setup.sh`.",
	},
	{
		"worker", "rsync_password_hosts", "", hostnames(func(s *settings) *[]string {
			return &s.worker.RsyncPasswordHosts
		}),
		"The hosts of rsync daemons to which the worker authenticates with `RSYNC_PASSWORD` when it fetches a " +
			"program. Any task can name a host, and a host could guess the password from the answer. The host in " +
			"`collect` always gets it.",
	},
	{
		"worker", "max_output", "1048576", size(0, maxOutput, func(s *settings) *int64 { return &s.worker.MaxOutput }),
		"How many bytes of a round's stdout the worker stores in Redis. The same limit applies to stderr. If a text " +
			"is longer, the worker leaves out its middle. The worker's files contain the whole text. 0 means 256 MiB.",
	},
	{
		"worker", "max_checkpoint", "1048576", size(0, maxOutput, func(s *settings) *int64 {
			return &s.worker.MaxCheckpoint
		}),
		"The largest `checkpoint`, in bytes. A larger checkpoint is not stored.",
	},
	{
		"worker", "max_result", "1048576", size(0, maxOutput, func(s *settings) *int64 { return &s.worker.MaxResult }),
		"The largest `result.json`, in bytes. A larger result makes the round fail.",
	},
	{
		"worker", "max_fetch", "16777216", size(0, maxOutput, func(s *settings) *int64 { return &s.worker.MaxFetch }),
		"How many bytes the files may have that a round brings back with the property `fetch`. With more, they stay " +
			"on the worker.",
	},
	{
		"worker", "max_updates", "1048576", size(0, maxOutput, func(s *settings) *int64 {
			return &s.worker.MaxUpdates
		}),
		"How many bytes of `updates` a round may report. The worker leaves out later updates.",
	},
	{
		"worker", "max_program_bytes", "1073741824", size(1, maxBytes, func(s *settings) *int64 {
			return &s.worker.Limits.Bytes
		}),
		"The largest program, in bytes. The limit applies to the download. It also applies to all unpacked files " +
			"together.",
	},
	{
		"worker", "max_program_entries", "100000", whole(1, maxCount, func(s *settings) *int {
			return &s.worker.Limits.Entries
		}),
		"The largest number of files, directories and links in a program's archive.",
	},
	{
		"worker", "max_program_depth", "32", whole(1, maxCount, func(s *settings) *int {
			return &s.worker.Limits.Depth
		}),
		"How deep directories may nest in a program's archive.",
	},
	{
		"worker", "max_program_ratio", "200", whole(1, maxCount, func(s *settings) *int {
			return &s.worker.Limits.Ratio
		}),
		"The largest ratio of an archive's unpacked size to its packed size. The limit applies only if more than 1 " +
			"MiB is unpacked.",
	},
	{
		"worker", "max_copy_bytes", "1073741824", size(0, maxBytes, func(s *settings) *int64 {
			return &s.worker.MaxCopyBytes
		}),
		"The largest program, in bytes, that the worker copies for each slot. The rounds of a larger program share " +
			"its directory. The limit does not apply if the file system can clone files. " +
			"See docs/programs.md, \"The directory of a round\".",
	},
	{
		"worker", "shared_programs", "", programs(func(s *settings) *[]string { return &s.worker.SharedPrograms }),
		"Names of programs, separated by blanks or commas, whose rounds share the program's directory. `*` means " +
			"all programs. See docs/programs.md, \"The directory of a round\".",
	},
}

// programKeys are the worker's keys for the rights and limits of programs, and for the files that programs leave.
var programKeys = []key{
	{
		"worker", "env", "", names(func(s *settings) *[]string { return &s.worker.Env }),
		"Names of variables, separated by blanks or commas. Programs get these variables from the worker's " +
			"environment, in addition to the variables that they always get. " +
			"See docs/programs.md, \"The environment\".",
	},
	{
		"worker", "env_file", "", programFile(func(s *settings) *string { return &s.worker.EnvFile }),
		"A file of `NAME=value` lines. Programs get these variables. TDF masks their values in reports and logs. In " +
			"the file's name, the worker replaces `$program` by the program's name. Only the worker's user may have " +
			"access to the file. Empty means no file.",
	},
	{
		"worker", "user", "", userName(func(s *settings) *string { return &s.worker.User }),
		"Programs run as this user (a name or a number). If this key is set, the worker must run as root. `%n` is " +
			"the number of the slot, from 1 to `concurrency`: `tdf-slot%n` gives each slot its own user. Without " +
			"`%n`, rounds that run at once can read each other's data. Empty means the worker's user.",
	},
	{
		"worker", "memory", "0", size(0, maxBytes, func(s *settings) *int64 { return &s.worker.Programs.Memory }),
		"How many bytes of memory a program may use, together with all processes that it starts. Without a cgroup, " +
			"the limit applies to the address space of each process. 0 means no limit.",
	},
	{
		"worker", "cpu_seconds", "0", whole(0, maxCount, func(s *settings) *int {
			return &s.worker.Programs.CPUSeconds
		}),
		"How many seconds of CPU time each process of a program may use. 0 means no limit.",
	},
	{
		"worker", "file_size", "0", size(0, maxBytes, func(s *settings) *int64 { return &s.worker.Programs.FileSize }),
		"The largest size, in bytes, of a file that a program writes. The limit also applies to the program's " +
			"output. 0 means no limit.",
	},
	{
		"worker", "open_files", "0", whole(0, maxCount, func(s *settings) *int { return &s.worker.Programs.OpenFiles }),
		"How many files each process of a program may have open. 0 means the soft limit with which the worker was " +
			"started.",
	},
	{
		"worker", "processes", "0", whole(0, maxCount, func(s *settings) *int { return &s.worker.Programs.Processes }),
		"How many processes a program may have at once. Without a cgroup, the limit applies to all processes of " +
			"`user` on the machine. 0 means no limit.",
	},
	{
		"worker", "nice", "0", whole(0, 19, func(s *settings) *int { return &s.worker.Programs.Nice }),
		"The nice value of programs. A higher value leaves more CPU time to other processes.",
	},
	{
		"worker", "require", "", anyOf(func(s *settings) *[]string { return &s.worker.Require }, isolations...),
		"The kinds of isolation that the worker must have, separated by blanks or commas. If one of them is " +
			"missing, the worker does not start. See docs/programs.md, \"Isolation\".",
	},
	{
		"worker", "collect", "", target(func(s *settings) *string { return &s.worker.Collect }),
		"The target to which the worker copies the content of `files/` after a round: `rsync:HOST:PATH`, " +
			"`rsync:rsync://HOST/MODULE/PATH`, or `rsync:PATH`. The copy is in the directory `$taskId/$round` of " +
			"the target. If this key is empty, `files/` stays beside the output file.",
	},
	{
		"worker", "keep_scratch", "never", oneOf(func(s *settings) *string {
			return &s.worker.KeepScratch
		}, "never", "failed"),
		"`keep_scratch=failed`: the worker keeps the `scratch/` of a failed round beside the round's output file. " +
			"`keep_scratch=never`: the worker removes every `scratch/`.",
	},
	{
		"worker", "keep_files", "604800", duration(aboveOrInf, func(s *settings) *time.Duration {
			return &s.worker.KeepFiles
		}),
		"How long the worker keeps output files after the last write, and fetched programs after their last use.",
	},
	{
		"worker", "max_files_bytes", "0", size(0, maxBytes, func(s *settings) *int64 {
			return &s.worker.MaxFilesBytes
		}),
		"The largest total size, in bytes, of output files and fetched programs. Above this size, the worker " +
			"removes the oldest first. It keeps files of the last 5 minutes, and programs that were used within the " +
			"last 2 hours. 0 means no limit.",
	},
	{
		"worker", "max_failures_in_row", "20", whole(0, maxCount, func(s *settings) *int {
			return &s.worker.MaxFailuresInRow
		}),
		"After this many failed rounds of a program in a row, the worker pauses the program for a minute, and then " +
			"tries one round. The worker pauses the program only if another worker succeeded with it within the " +
			"last hour, or if the last round could not be started. 0 means that failures in a row cause no pause.",
	},
	{
		"worker", "metrics_listen", "", address(func(s *settings) *string { return &s.worker.MetricsListen }),
		"The address that serves the [metrics](metrics.md) of the namespace and of this worker at `/metrics`, such " +
			"as `127.0.0.1:9101`. Everyone who can reach the address can read them. Empty means none.",
	},
}

var isolations = []string{
	"subreaper", "cgroup", "user", "memory", "cpu_seconds", "file_size", "open_files",
	"processes", "nice",
}
