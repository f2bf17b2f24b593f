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
		"worker", "directory", ".", path(func(s *settings) *string { return &s.worker.Directory }),
		"The working directory. Each program has a directory below it. A relative path is relative to the directory " +
			"in which the worker was started. Each of several `namespaces` has a working directory of its own below this one.",
	},
	{
		"worker", "task_output_filename", outputFile, filename(func(s *settings) *string {
			return &s.worker.TaskOutputFilename
		}),
		"The file for a round's stdout. A relative path is relative to the working directory. The worker replaces " +
			"`$program`, `$worker`, `$taskId` and `$round` by their values. If the file exists, the new file's name " +
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
		"worker", "concurrency", "1", slots(func(s *settings) *divided[int] { return &s.slots }),
		"The number of slots: how many programs run at once. `auto` means one slot for each core that the worker " +
			"may use (affinity, quota of its cgroup). With `resources`, it " +
			"bounds only the tasks that ask for nothing. With several `namespaces`, a single number " +
			"holds for each of them, and `a:4,b:2` sets different numbers.",
	},
	{
		"worker", "resources", "none", resources(func(s *settings) *divided[*class.ResourceOffer] { return &s.offers }),
		"What the worker offers to tasks that ask for [resources](resources.md): `none`, `auto` (the cores, memory " +
			"and GPUs of the machine), or amounts such as `cpus=8 memory=16G gpus=2 licence=1`. After `auto`, amounts " +
			"replace or add to what the machine has. A task that asks for nothing then takes one of the cpus. With " +
			"several `namespaces`, each needs a part of its own: `a:cpus=4,memory=8G b:cpus=4`. Not over the HTTP API.",
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
		"worker", "max_output", "1048576", size(0, maxOutput, func(s *settings) *int64 { return &s.worker.MaxOutput }),
		"How many bytes of a round's stdout the worker stores in Redis. The same limit applies to stderr. If a text " +
			"is longer, the worker leaves out its middle. The worker's files contain the whole text. 0 means 256 MiB.",
	},
	{
		"worker", "max_fetch", "16777216", size(0, maxOutput, func(s *settings) *int64 { return &s.worker.MaxFetch }),
		"How many bytes the files may have that a round brings back with the property `fetch`. With more, they stay " +
			"on the worker.",
	},
	{
		"worker", "max_program_bytes", "1073741824", size(1, maxBytes, func(s *settings) *int64 {
			return &s.worker.MaxProgramBytes
		}),
		"The largest program, in bytes. The limit applies to the download. It also applies to all unpacked files " +
			"together.",
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
			"the file's name, the worker replaces `$program` by the program's name; see " +
			"docs/programs.md, \"Secrets\". Only the worker's user may have access to the file. Empty means no file.",
	},
	{
		"worker", "user", "", userName(func(s *settings) *string { return &s.worker.User }),
		"Programs run as this user (a name or a number). If this key is set, the worker must run as root. `%n` is " +
			"the number of the slot, from 1 to `concurrency`: `tdf-slot%n` gives each slot its own user. Without " +
			"`%n`, rounds that run at once can read each other's data. Empty means the worker's user.",
	},
	{
		"worker", "memory", "0", size(0, maxBytes, func(s *settings) *int64 { return &s.worker.Memory }),
		"How many bytes of memory a program may use, together with all processes that it starts. 0 means no limit. A " +
			"limit requires a [cgroup](programs.md#isolation).",
	},
	{
		"worker", "keep_programs", "604800", duration(aboveOrInf, func(s *settings) *time.Duration {
			return &s.worker.KeepPrograms
		}),
		"How long the worker keeps fetched programs after their last use, and at least 2 hours.",
	},
	{
		"worker", "metrics_listen", "", address(func(s *settings) *string { return &s.worker.MetricsListen }),
		"The address that serves the [metrics](metrics.md) of the namespace and of this worker at `/metrics`, such " +
			"as `127.0.0.1:9101`. Everyone who can reach the address can read them. Empty means none.",
	},
}
