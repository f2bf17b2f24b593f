package config

import "time"

var workerKeys = []key{
	{
		"worker", "directory", ".", path(func(s *settings) *string { return &s.worker.Directory }),
		"The working directory: programs live in directories below it. A relative one is relative to where the worker is started.",
	},
	{
		"worker", "task_output_filename", outputFile, filename(func(s *settings) *string { return &s.worker.TaskOutputFilename }),
		"Where the worker keeps the stdout of each round, in its working directory. `$program`, `$worker`, `$taskId` and `$round` are filled in. If the name is taken, the new file gets a number: `x~2.out`.",
	},
	{
		"worker", "task_error_filename", errorFile, filename(func(s *settings) *string { return &s.worker.TaskErrorFilename }),
		"The same for stderr.",
	},
	{
		"worker", "concurrency", "1", slots(func(s *settings) *int { return &s.worker.Concurrency }),
		"How many programs run at once. `auto`: as many as this machine has cores.",
	},
	{
		"worker", "sleep_after_success", "0", duration(fromZero, func(s *settings) *time.Duration { return &s.worker.SleepAfterSuccess }),
		"The pause after a round that went well.",
	},
	{
		"worker", "sleep_after_failure", "0.5", duration(fromZero, func(s *settings) *time.Duration { return &s.worker.SleepAfterFailure }),
		"The pause after a round that failed.",
	},
	{
		"worker", "sleep_after_no_process_claimed", "2.0", duration(fromZero, func(s *settings) *time.Duration { return &s.worker.SleepAfterNoProcessClaimed }),
		"The longest wait of a worker with nothing to do before it looks again; it is woken when a task is there for it. 0: no wait.",
	},
	{
		"worker", "lease", "30", duration(aboveZero, func(s *settings) *time.Duration { return &s.worker.Lease }),
		"A worker that gives no sign of life for so long has lost its tasks. It gives one every third of this.",
	},
	{
		"worker", "on_lease_lost", "continue", oneOf(func(s *settings) *string { return &s.worker.OnLeaseLost }, "continue", "end"),
		"What becomes of a running program when the worker could not renew its lease in time: `continue` runs it on, `end` ends it and gives the task back.",
	},
	{
		"worker", "grace", "10", duration(zeroToInf, func(s *settings) *time.Duration { return &s.worker.Grace }),
		"How long a running program may go on when the worker is told to stop; then its task is given back.",
	},
	{
		"worker", "kill_grace", "5", duration(fromZero, func(s *settings) *time.Duration { return &s.worker.KillGrace }),
		"How long a program that was told to end (SIGTERM) has before it is killed (SIGKILL).",
	},
	{
		"worker", "fetch_timeout", "600", duration(aboveZero, func(s *settings) *time.Duration { return &s.worker.FetchTimeout }),
		"How long fetching a program may take, with unpacking and `setup.sh`.",
	},
	{
		"worker", "max_output", "1048576", size(0, maxOutput, func(s *settings) *int64 { return &s.worker.MaxOutput }),
		"How many bytes of a round's stdout, and of its stderr, go to Redis: of what is longer, the beginning and the end; all of it stays in the worker's files. 0: all, up to 256 MiB.",
	},
	{
		"worker", "max_checkpoint", "1048576", size(0, maxOutput, func(s *settings) *int64 { return &s.worker.MaxCheckpoint }),
		"The largest `checkpoint`, in bytes, that is kept with a task; a larger one is not taken.",
	},
	{
		"worker", "max_result", "1048576", size(0, maxOutput, func(s *settings) *int64 { return &s.worker.MaxResult }),
		"The largest `result.json`, in bytes; a larger one fails the round.",
	},
	{
		"worker", "max_updates", "1048576", size(0, maxOutput, func(s *settings) *int64 { return &s.worker.MaxUpdates }),
		"How many bytes of `updates` a round may report; what comes after that is left out.",
	},
	{
		"worker", "max_program_bytes", "1073741824", size(1, maxBytes, func(s *settings) *int64 { return &s.worker.Limits.Bytes }),
		"The largest program: the bytes of the download, and of all that is unpacked from it.",
	},
	{
		"worker", "max_program_entries", "100000", whole(1, maxCount, func(s *settings) *int { return &s.worker.Limits.Entries }),
		"The most files, directories and links in a program's archive.",
	},
	{
		"worker", "max_program_depth", "32", whole(1, maxCount, func(s *settings) *int { return &s.worker.Limits.Depth }),
		"The deepest that directories in a program's archive may nest.",
	},
	{
		"worker", "max_program_ratio", "200", whole(1, maxCount, func(s *settings) *int { return &s.worker.Limits.Ratio }),
		"The most bytes that one byte of an archive may unpack to, beyond the first MiB.",
	},
}

// programKeys are about what programs may do, and what becomes of what they leave.
var programKeys = []key{
	{
		"worker", "env", "", names(func(s *settings) *[]string { return &s.worker.Env }),
		"More variables of the worker's environment that programs get, separated by blanks or commas. See docs/programs.md, \"How a program is run\".",
	},
	{
		"worker", "env_file", "", programFile(func(s *settings) *string { return &s.worker.EnvFile }),
		"A file of `NAME=value` lines that programs get as variables, and whose values are masked in what is reported and logged. `$program` is filled in. It must be readable by the worker's user alone. Empty: none.",
	},
	{
		"worker", "user", "", userName(func(s *settings) *string { return &s.worker.User }),
		"The user to run programs as, by name or number; the worker must run as root for that. `%n` stands for the number of the slot, from 1 to `concurrency`: `tdf-slot%n` is a user for each slot. Without it, rounds that run at once can read each other's data. Empty: the worker's own.",
	},
	{
		"worker", "memory", "0", size(0, maxBytes, func(s *settings) *int64 { return &s.worker.Programs.Memory }),
		"How many bytes of memory a program may use with all that it starts (where there is no cgroup: the address space of each process). 0: no limit.",
	},
	{
		"worker", "cpu_seconds", "0", whole(0, maxCount, func(s *settings) *int { return &s.worker.Programs.CPUSeconds }),
		"How many seconds of CPU time each process of a program may use. 0: no limit.",
	},
	{
		"worker", "file_size", "0", size(0, maxBytes, func(s *settings) *int64 { return &s.worker.Programs.FileSize }),
		"How large, in bytes, a file may become that a program writes, its output too. 0: no limit.",
	},
	{
		"worker", "open_files", "0", whole(0, maxCount, func(s *settings) *int { return &s.worker.Programs.OpenFiles }),
		"How many files each process of a program may have open. 0: as for the worker.",
	},
	{
		"worker", "processes", "0", whole(0, maxCount, func(s *settings) *int { return &s.worker.Programs.Processes }),
		"How many processes a program may have at once (where there is no cgroup: how many `user` may have on this machine). 0: no limit.",
	},
	{
		"worker", "nice", "0", whole(0, 19, func(s *settings) *int { return &s.worker.Programs.Nice }),
		"How much programs stand back for others when CPU time is short, from 0 to 19.",
	},
	{
		"worker", "require", "", anyOf(func(s *settings) *[]string { return &s.worker.Require }, isolations...),
		"Isolation without which the worker does not start, separated by blanks or commas. See docs/programs.md, \"Isolation\".",
	},
	{
		"worker", "collect", "", target(func(s *settings) *string { return &s.worker.Collect }),
		"Where the content of `files/` goes when a round has ended, below a directory `$taskId/$round`: `rsync:HOST:PATH`, `rsync:rsync://HOST/MODULE/PATH`, or `rsync:PATH`. Empty: it stays beside the output file.",
	},
	{
		"worker", "keep_scratch", "never", oneOf(func(s *settings) *string { return &s.worker.KeepScratch }, "never", "failed"),
		"Whether `scratch/` is kept beside the output file of a round that failed; else it is removed.",
	},
	{
		"worker", "keep_files", "604800", duration(aboveOrInf, func(s *settings) *time.Duration { return &s.worker.KeepFiles }),
		"How long output files, and fetched programs that nobody used, stay on the worker.",
	},
	{
		"worker", "max_files_bytes", "0", size(0, maxBytes, func(s *settings) *int64 { return &s.worker.MaxFilesBytes }),
		"How many bytes output files and fetched programs may have together: the oldest go first. What was used within minutes, or of programs within hours, stays. 0: no limit.",
	},
	{
		"worker", "max_failures_in_row", "20", whole(0, maxCount, func(s *settings) *int { return &s.worker.MaxFailuresInRow }),
		"After so many failed rounds of one program in a row the worker pauses it for a minute, then tries one round, if another worker succeeded with the program within the last hour or the last round could not be started. 0: never.",
	},
}

var isolations = []string{"subreaper", "cgroup", "user", "memory", "cpu_seconds", "file_size", "open_files", "processes", "nice"}
