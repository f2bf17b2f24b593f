package doctest

import (
	"regexp"
	"strings"
	"testing"

	"github.com/tdf-framework/tdf/internal/expect"
)

var placeholder = regexp.MustCompile(`\{(.*?)(?: in (\w+))?\}`)

// The numbers of these sentences are those of the code.
func TestNumbers(t *testing.T) {
	for page, sentences := range numbers {
		text := strings.Join(strings.Fields(read(t, "docs/"+page)), " ")
		for _, sentence := range sentences {
			want := regexp.QuoteMeta(sentence)
			for _, m := range placeholder.FindAllStringSubmatch(sentence, -1) {
				want = strings.Replace(want, regexp.QuoteMeta(m[0]), number(t, m[1], m[2]), 1)
			}
			expect.True(t, regexp.MustCompile(want).MatchString(text), "docs/"+page, "does not have", want)
		}
	}
}

// numbers lists sentences of pages whose numbers are constants of the code. {web.maxBody in MiB} stands for the MiB in
// this constant, and {[http] timeout} for the default of this key.
var numbers = map[string][]string{
	"http.md": {
		"or up to {web.maxTasks}: the body is",
		"opens up to {web.linesAtOnce} tasks at a time",
		"changes up to {redisstate.maxTasksPerCall} tasks, all or nothing",
		"is {web.eventsQueued} events behind",
		"renews up to {broker.mostRenewals} claims",
		"reports up to {broker.mostReports} tasks",
		"A body has at most {web.maxBody in MiB} MiB, and {web.maxBulk in MiB} MiB where",
		"at most {web.maxDepth} levels and {web.maxValues} values",
		"All bodies that are under way have at most {web.maxBodies in MiB} MiB",
		"The header of a call has at most {internal/apiserver.maxHeader in KiB} KiB.",
		"the texts of the last {admin.recentTexts} rounds",
		"that clients are reading have at most {web.maxAnswers in MiB} MiB",
		"lease is from {broker.leastLease} to {broker.longestLease} s; the default is {broker.usualLease} s",
		"registers at most {broker.mostNames} names of workers within {redisstate/presence.UsuallyRemembered in weeks} week",
		"have at most {broker.maxNames in MiB} MiB together",
		"the first {broker.keptRuns} runs of a heartbeat",
		"may make {[http] calls_per_token} calls a second, and an address {[http] calls_per_address}.",
		"At most {[http] calls_at_once} calls run at the same time, and there are at most {[http] connections} connections.",
		"A call takes at most {[http] timeout} s",
		"and {web.writeTime in minutes} minute more than 50 s to read the answer",
		"Without a token, it has {web.bodyTime} s for the body.",
		"A claim may wait for at most {broker.longestWait} s",
		"At most {web.usualWaiting} claims wait in a process.",
		"At most {web.usualStreams} streams go on at the same time, and clients follow at most {web.maxFollowed} outputs",
		"within {web.streamWriteTime} s, its connection",
		"takes longer than {internal/apiserver.headerTime} s, if no call comes for {internal/apiserver.idleTime in minutes} minutes",
	},
	"tdf.md": {
		"larger than `max_fetch` of its worker ({[worker] max_fetch in MiB} MiB)",
		"| {cmd/tdf/internal/cli.statusMany} | more than 100 commands failed |",
		"| {cmd/tdf/internal/cli.statusNotRun} | `tdf run` itself failed",
		"| {cmd/tdf/internal/cli.StatusInterrupted} | interrupted by Ctrl-C or SIGTERM |",
		"fails after {cmd/tdf/internal/cli.firstAnswer} s",
		"at most {redisstate/programs.MaxBytes in MiB} MiB",
		"more than {sweep.maxDigits} digits as a decimal",
		"At most {redisstate.maxOpenedAtOnce} tasks are opened together",
		"at most the {internal/listing.mostFailed} oldest such failures",
		"the run times of the last {admin.mostTook} tasks",
		"its first {admin.sameFailures} rounds or more all failed",
		"is longer than {internal/results.maxLastLine in KiB} KiB",
		"at most {internal/results.maxColumns} columns, with {internal/results.maxNames in MiB} MiB of names",
		"the first {admin.mostNamed} tasks and campaigns",
		"in up to {redisstate.higherCounted} higher priorities",
		"A namespace has at most {access.MaxTokens} tokens",
		"warns about each of the first {admin.mostKeptLogged}.",
	},
	"programs.md": {
		"more than `max_copy_bytes` ({[worker] max_copy_bytes in GiB} GiB)",
		"of {fetch.fewOfCopy} to {fetch.mostFiles} files",
		"at most {worker/rounddir.progressText} bytes of the text",
		"The file has at most {broker.MaxAfter in MiB} MiB. If it would be larger",
		"Only the first {worker/rounddir.updateBytes in KiB} KiB of a line",
		"Lines of fewer than {worker/rounddir.leastUpdate} bytes count as {worker/rounddir.leastUpdate} bytes.",
		"The file has at most {tdf.MaxFollowingBytes in MiB} MiB and {tdf.MaxFollowing} tasks.",
		"nested at most {worker/rounddir.mostDeep} deep",
		"at most {tdf.MaxPatterns} patterns with {tdf.maxPatternBytes in KiB} KiB together",
		"`max_fetch` bytes ({[worker] max_fetch in MiB} MiB) or are more than {internal/bundle.MaxFiles},",
		"an archive of up to {redisstate/programs.MaxBytes in MiB} MiB",
		"more than {tdf.MaxSource} bytes, or control characters",
		"the exit status is {worker.exitNotFound} if the command does not exist, and {worker.exitNotExecutable} if",
		"follow at most {internal/origin.maxRedirects} redirects",
		"retries a download up to {fetch.maxRetries} times",
		"no data for {fetch.DefaultIdleTimeout} s",
		"lock open, as descriptor {worker/process.KeptDescriptor}.",
		"once more than {fetch.ratioFrom in MiB} MiB is decompressed",
		"may have at most {fetch.maxNames in MiB} MiB together",
		"The file has at most {worker/secrets.MaxFile in KiB} KiB",
		"every value of at least {worker/secrets.Shortest} bytes",
		"a value of more than {worker/secrets.mostEscaped} bytes",
		"up to {worker/record.InMemory in KiB} KiB of each text in memory",
		"at most {broker.MaxReason in KiB} KiB of the error's text",
	},
	"dashboard.md": {
		"up to {web/dashboard.maxWords} campaigns, workers",
		"the newest {web/dashboard.sampledTasks} tasks in each state",
		"the last {worker/record.tailBytes in KiB} KiB of a running round. An open page collects up to {web/dashboard.longestOutput in KiB} KiB.",
		"{web/dashboard.shownNeighbours} on each side",
		"the {web/dashboard.queuesOnOverview} queues with the most unfinished tasks, and the page *Queues* shows {web/dashboard.queuesShown}.",
		"at most {web/dashboard.longestOutput in KiB} KiB of an output, and {web/dashboard.longestLine} bytes of a line",
		"every {web/dashboard.livePause} seconds, or every {web/dashboard.liveQuiet} seconds if tasks do not change",
		"one check every {web.checkPause} seconds",
		"A page shows {web/dashboard.timelineWorkers} workers. The first {redisstate/presence.MaxBarSlot} slots",
		"the last {redisstate/presence.MaxBars} bars of a worker",
		"A login lasts {access.SessionLife in weeks} week,",
		"logged in in {access.MaxSessions} browsers",
		"and then one every {web.loginGap} seconds",
		"of more than {web/dashboard/plot.mostDots} tasks",
		"the last {internal/results.outputSearched in KiB} KiB of the output",
		"the columns of the last {internal/results.maxTables} campaigns",
		"more than {internal/results.maxTableRows} tasks or {internal/results.maxTableCells} values",
		"at most {internal/results.maxTableColumns} columns, with names of at most {internal/results.maxText} bytes, and {internal/results.maxTexts} different",
		"after {internal/results.sweepPause in minutes} minute, or after {internal/results.sweepEvery in minutes} minutes if the plot shows a sample",
		"The whole form may have {web/dashboard.maxCampaignForm in MiB} MiB.",
		"the last {web/dashboard.shownNotices} [notices]",
	},
	"notifications.md": {
		"At least {notify.leastFinished} tasks of a campaign",
		"at least {notify.quietTime in minutes} minutes",
		"the last {redisstate/notices.Max} notices",
		"shows the last {web/dashboard.shownNotices} notices",
		"every {notify.lookPause} seconds, and {notify.groupsAtOnce} campaigns each second",
		"again after {notify.firstRetry} seconds",
		"and so on up to {notify.lastRetry in hours} hour. After {notify.mostTries} attempts",
		"Redis keeps {redisstate/notices.Max} notices.",
	},
	"periodic.md": {
		"after {server.periodicPause} s at the latest",
		"within {tdf.missedAfter in minutes} minute, or before the next time",
		"at most the newest {tdf.mostMissed}.",
		"at most {tdf.MaxPeriodics} periodics",
		"A name has 1 to {tdf.MaxName} bytes",
		"1 to {tdf.MaxPeriodicTasks} tasks, and its definition at most {tdf.MaxPeriodic in KiB} KiB",
		"at least {tdf.MinPeriod} s apart",
	},
	"remote-workers.md": {
		"up to {tdf.TimeoutMargin} s later",
		"Updates have up to {worker/rounddir.updateBytes in KiB} KiB,",
		"up to {broker.longestUpdate in KiB} KiB, and a round up to {broker.mostUpdates}.",
		"may be larger than {broker.maxOutput in MiB} MiB. | They are at most {broker.maxOutput in MiB} MiB.",
		"may be up to {internal/bundle.MaxBytes in MiB} MiB. | It is at most {broker.MaxFetch in MiB} MiB.",
		"A claim gets at most {broker.mostClaims} tasks.",
		"It is from {broker.leastLease} to {broker.longestLease} s",
	},
	"resources.md": {
		"up to {tdf.MaxMemory in TiB}T",
		"up to {tdf.MaxResourceName} small letters",
		"at most {tdf.MaxAlternatives} alternatives, each with at most {tdf.MaxResources} resources",
		"at most {worker.roundsPerCore} rounds for each core, and at most {worker.mostRounds}.",
	},
	"metrics.md": {
		"of the {redisstate/counts.busiestAtOnce} queues that had the most open tasks, and of {redisstate/counts.othersAtOnce} others",
		"With more than {redisstate/counts.mostNames} queues",
		"at most {redisstate/index.PartitionsListed} combinations",
		"more than {redisstate/counts.prioritiesCounted} different priorities",
		"has at most {metrics.mostQueues} values",
		"a scrape reads the counts of {redisstate/counts.othersAtOnce} of these others",
		"after {redisstate/counts.keepCounts in days} days without a task",
	},
	"lifecycle.md": {
		"Round {tdf.MaxRound} is the last round.",
		"which keeps the last {tdf.maxNotOn} names",
		"at most {tdf.maxUnfitHosts} times because of its workers' hosts",
		"whose last {worker.lastRuns} rounds took less than {worker.shortRun in ms} ms",
		"up to {worker.prefetchedFor in ms} ms of expected work",
		"at most {worker.markedAfter in ms} ms after the start",
		"one of {tdf.spreads} factors",
		"more than {tdf.MaxBackoff} s ({tdf.MaxBackoff in days} days), or a factor below 1 or above {tdf.MaxBackoffFactor}.",
		"for 1 s at first, and twice as long each time, up to {worker.longestShortPause in minutes} minutes",
		"if less than {worker.leastFree in MiB} MiB is free",
		"the server waits {tdf.TimeoutMargin} s longer",
		"more than {tdf.claimWater in percent} % of its `maxmemory`",
		"has at most {tdf.MaxTags} tags. The name of a queue has 1 to {tdf.MaxLabel} characters",
		"A tag has 1 to {tdf.MaxTag} characters",
		"At most {tdf.MaxPaused} queues and groups",
		"At most {tdf.MaxLimits} keys have a limit. A number is at most {tdf.MaxAtMost}. A rate has at most {tdf.MaxStarts} starts,",
		"from {tdf.MinPer in ms} ms to {tdf.MaxPer} s",
		"The key has 1 to {tdf.MaxName} bytes",
		"If a returned task is not claimed for {tdf.ReturnPatience} s",
		"at most {tdf.MaxDependencies} tasks and groups",
		"among the {admin.sampledWaiting} tasks that have waited for the longest time",
		"can open up to {tdf.MaxFollowing} tasks",
		"new tasks of up to {redisstate.mostWakeLists} partitions",
		"again every {tdf.neededPause in minutes} minutes",
		"tasks wait for more than {server.groupsPerLook} groups",
		"in batches of up to {server.batchSize} tasks",
		"Its last use was more than {tdf.ProgramKeep in weeks} week ago.",
		"up to {server.removedAtOnce} programs after each part of the walk, every {server.walkPause} s",
	},
	"operations.md": {
		"`max_failures_in_row` ({[worker] max_failures_in_row}) rounds",
		"for `sleep_after_failure` ({[worker] sleep_after_failure} s)",
		"no tasks for {worker.forgetPause in minutes} minutes",
		"After {worker.slowedAfter} failures in a row",
		"at first, then twice as long each time, up to {worker.probePause in minutes} minute",
		"Every {worker.upkeepPause in minutes} minutes the worker removes",
		"older than `keep_files` ({[worker] keep_files in days} days)",
		"younger than {worker/retention.Young in minutes} minutes, and programs used within the last {fetch.UsedFor in hours} hours",
		"within {redisstate.roomForClaims} s, or {redisstate.roomWithoutLimit} s if Redis",
		"Above {tdf.claimWater in percent} % of `maxmemory`",
		"of the {admin.sampledAwaited} campaigns that the most tasks wait for",
		"each needs {worker.filesPerSlot} open files",
	},
	"configuration.md": {
		"of at most {config.maxFile in KiB} KiB",
	},
	"python.md": {
		"({[worker] max_output in MiB} MiB by default)",
	},
}
