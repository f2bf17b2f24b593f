package admin

import (
	"fmt"
	"strings"
)

// A Fact is a reason why tasks do not finish, or something else that the user should know. [Admin.Explain],
// [Admin.Diagnose] and [Watch.Look] derive their Facts from the same snapshot of the namespace, so they agree.
type Fact struct {
	Code FactCode `json:"code,omitempty"` // "" if there is nothing to do
	// the object of which the Fact is true, such as the key of a limit; "" if its kind says that
	About string `json:"about,omitempty"`
	Text  string `json:"text"`         // may contain numbers and times, and so change while the Fact stays true
	Fix   Fix    `json:"fix,omitzero"` // zero if nothing is needed
}

// A Fix says what the user can do about a [Fact]. In JSON, it is its Text.
type Fix struct {
	Text  string
	Steps []Step // the steps that Text names, so that a front end can offer them; Text may name others, too
}

// MarshalText returns the Text.
func (f Fix) MarshalText() ([]byte, error) { return []byte(f.Text), nil }

// A Step is one thing that a user can do.
type Step int

// The steps.
const (
	StepStartServer Step = iota
	StepStartWorker
	StepListWorkers
	StepResumeWorker
	StepChangeStart
	StepRaisePriority
	StepChangeSource // store the program in Redis, and change the source
	StepRetry
	StepRetryLater // retry with a later end_before
	StepRequeue
	StepEndPause
	StepRaiseLimit
	StepListLimits
	StepClose      // close a campaign
	StepCancel     // cancel a task
	StepCancelOpen // cancel the open tasks of a campaign
	StepCorrect    // pause a campaign, correct its program, and retry its failed tasks
	StepExplain    // explain an open task
	StepListRunning
	StepCheck // look for inconsistent tasks
	StepRemoveFinished
	StepRaiseMaxTasks
	StepChangeSetting
	StepRetryCallbacks // show the failed callbacks, and run them again
	StepListPeriodics
	StepRemovePeriodic
	StepResumePeriodic
	StepCount // the number of steps
)

// fix returns a Fix with its steps, in the order in which the text names them.
func fix(text string, steps ...Step) Fix { return Fix{text, steps} }

// or returns a Fix that offers both: "wait, or raise the limit".
func (f Fix) or(other Fix) Fix {
	return Fix{f.Text + ", or " + other.Text, append(f.Steps[:len(f.Steps):len(f.Steps)], other.Steps...)}
}

// Fixes that several Facts have.
var (
	toWait         = fix("wait")
	toStartServer  = fix("start a server", StepStartServer)
	toStartWorker  = fix("start a worker", StepStartWorker)
	toEndPause     = fix("end the pause", StepEndPause)
	toRaiseLimit   = fix("raise the limit", StepRaiseLimit)
	toClose        = fix("close the campaign when it has all of its tasks", StepClose)
	toRemove       = fix("archive and remove finished tasks", StepRemoveFinished)
	toRaiseMemory  = toRemove.or(fix("raise maxmemory"))
	toExplain      = fix("explain one of the open tasks", StepExplain)
	toStartWorkers = toWait.or(fix("start more workers"))
	toMakeStart    = fix(`repair the hosts or the source: then the tasks go on by themselves; or cancel them `+
		`(docs/lifecycle.md, "Held programs")`, StepCancelOpen)
)

// mostNamed is the maximum number of names in a text.
const mostNamed = 5

// joinNames joins at most the first mostNamed names.
func joinNames(names []string) string {
	if len(names) > mostNamed {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNamed], ", "), len(names)-mostNamed)
	}
	return strings.Join(names, ", ")
}

// A FactCode is the kind of a [Fact] (docs/operations.md, "Codes of reasons").
type FactCode string

// The kinds of Facts.
const (
	FactNoServer         FactCode = "no_server"
	FactServerLate       FactCode = "server_late"
	FactNoWorker         FactCode = "no_worker"
	FactNoClaims         FactCode = "no_claims"
	FactUnserved         FactCode = "unserved"
	FactWorkerRefuses    FactCode = "worker_refuses"
	FactQueue            FactCode = "queue"
	FactIdleSlots        FactCode = "idle_slots"
	FactSilentWorker     FactCode = "silent_worker"
	FactSilentWorkers    FactCode = "silent_workers"
	FactOriginalWorker   FactCode = "original_worker"
	FactPaused           FactCode = "paused"
	FactProgramPaused    FactCode = "program_paused"
	FactWorkerShort      FactCode = "worker_short"
	FactAllFail          FactCode = "all_fail"
	FactLongRun          FactCode = "long_run"
	FactLimitFull        FactCode = "limit_full"
	FactLimitZero        FactCode = "limit_zero"
	FactLimitRemoved     FactCode = "limit_removed"
	FactDependencies     FactCode = "dependencies"
	FactDependencyUnmet  FactCode = "dependency_unmet"
	FactLinking          FactCode = "linking"
	FactUnblocking       FactCode = "unblocking"
	FactCampaignOpen     FactCode = "campaign_open"
	FactCampaignCycle    FactCode = "campaign_cycle"
	FactTaskCycle        FactCode = "task_cycle"
	FactStartAfter       FactCode = "start_after"
	FactNeverStarts      FactCode = "never_starts"
	FactBackOff          FactCode = "back_off"
	FactGracePeriod      FactCode = "grace_period"
	FactExpires          FactCode = "expires"
	FactLeaseOver        FactCode = "lease_over"
	FactIncomplete       FactCode = "incomplete"
	FactUnlisted         FactCode = "unlisted"
	FactInvalid          FactCode = "invalid"
	FactSourceInvalid    FactCode = "source_invalid"
	FactSourceMissing    FactCode = "source_missing"
	FactNoHandler        FactCode = "no_handler"
	FactMaxTasks         FactCode = "max_tasks"
	FactOpensWait        FactCode = "opens_wait"
	FactClaimsWait       FactCode = "claims_wait"
	FactMemoryLow        FactCode = "memory_low"
	FactNoMaxmemory      FactCode = "no_maxmemory"
	FactEviction         FactCode = "eviction"
	FactRedisCannotWrite FactCode = "redis_cannot_write"
	FactNoAppendOnlyFile FactCode = "no_append_only_file"
	FactRedisSetting     FactCode = "redis_setting"
	FactRedisVersion     FactCode = "redis_version"
	FactReplica          FactCode = "replica"
	FactNoReplica        FactCode = "no_replica"
	FactTooFewReplicas   FactCode = "too_few_replicas"
	FactReplicaLags      FactCode = "replica_lags"
	FactNoQuorum         FactCode = "no_quorum"
	FactMissingRights    FactCode = "missing_rights"
	FactEmbeddedRedis    FactCode = "embedded_redis"
	FactNoPassword       FactCode = "no_password"
	FactClock            FactCode = "clock"
	FactLayout           FactCode = "layout"
	FactInvalidSetting   FactCode = "invalid_setting"
	FactCallbackFailed   FactCode = "callback_failed"
	FactManagersOverlap  FactCode = "managers_overlap"
	FactPeriodicInvalid  FactCode = "periodic_invalid"
	FactPeriodicFailed   FactCode = "periodic_failed"
	FactPeriodicOverdue  FactCode = "periodic_overdue"
	FactPeriodicAhead    FactCode = "periodic_ahead"
)
