package redisstate

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf/internal/task"
)

// Fields are groups of a task's properties. Several groups are combined with |.
type Fields uint16

const (
	// Head includes the state, the round, the program, the group, the owner and the outcome.
	Head Fields = 1 << iota
	// Source includes the source of the program.
	Source
	// Facts includes all properties of the task except the texts. It also includes the facts of the rounds that
	// Want.Rounds selects.
	Facts
	// Rules includes the properties that decisions about the task need. An example of a decision is [rules.Settle].
	Rules
	// Result includes the properties that the Move of a result needs ([rules.Execute] and [rules.Move.Settled]).
	Result
	// Blobs includes the blobs that the task names ([task.Task.NamedBlobs]).
	Blobs
	// Lists includes the lists that hold the task, and the task's score in each list.
	Lists
	// Whole includes all properties of the task and of all its rounds, with the texts.
	Whole

	// Rules has these parts. Every decision needs the first two; rulesAlways are read first. If a task may start again,
	// the decision also needs its definition. Only decisions about running tasks need rulesRunning.
	rulesAlways
	rulesMore
	definition
	rulesRunning

	short     // a text; its valid length is at most longestField bytes
	unbounded // a text of any length
	unread    // a property that only Whole includes
)

// A property is the name of a property in Redis, and the groups to which it belongs.
type property struct {
	name string
	in   Fields
}

var taskProperties = withOthers([]property{
	{"state", Head | Result | rulesAlways},
	{"round", Head | Result | rulesAlways},
	{"program", Head | definition},
	{"group", Head | Result | rulesAlways},
	{"owner", Head},
	{"outcome", Head | rulesMore},
	{"source", Source | definition},
	{"start_after", Facts | Result | rulesAlways},
	{"end_before", Facts | Result | rulesAlways},
	{"timeout", Facts | rulesMore},
	{"max_fails", Facts | Result | rulesAlways},
	{"max_timeouts", Facts | rulesMore},
	{"max_losses", Facts | rulesMore},
	{"max_attempts", Facts | Result | rulesMore},
	{"claim_before", Facts | Result | rulesMore},
	{"backoff", Facts | Result | rulesAlways},
	{"backoff_factor", Facts | Result | rulesMore},
	{"backoff_max", Facts | Result | rulesMore},
	{"keep_finished", Facts | Result | rulesAlways},
	{"keep_archived", Facts | rulesMore},
	{"keep_outputs", Facts | Result | rulesAlways},
	{"outputs_from", Facts | rulesMore},
	{"outputs_removed", Facts},
	{"unique", Facts | rulesMore},
	{"unique_until", Facts},
	{"correlation_id", Facts},
	{"queue", Facts | Result | definition | rulesAlways},
	{"priority", Facts | definition},
	{"tags", Facts | definition},
	{"by_group", Facts | definition},
	{"input_encoding", Facts | definition},
	{"fetch", Facts | Result | definition},
	{task.FieldBlobs, short | definition | Blobs},
	{task.FieldMade, short | Blobs},
	{"limit_key", Facts | Result | rulesMore | definition},
	{"place", Facts | definition},
	{"fail_on", Facts | Result | rulesAlways},
	{"generations", Facts},
	{"fails", Facts | Result | rulesAlways},
	{"timeouts", Facts | Result | rulesMore},
	{"losses", Facts | Result | rulesMore},
	{"releases", Facts | rulesMore},
	{"reopens", Facts | rulesMore},
	{"revision", Facts | rulesAlways}, // in the first step: see Store.Read
	{"unfit", Facts},
	{"ready", Facts | rulesMore},
	{"links", Facts | rulesMore},
	{"dependents", Facts | rulesMore},
	{task.FieldAfter, unread},
	{task.FieldAfterAny, unread},
	{task.FieldAfterGroup, unread},
	{task.FieldAfterGroupAny, unread},
	{"endings", unread},
	{"deadline", Facts | rulesMore},
	{"lease_until", Facts | rulesMore},
	{"lease", Facts | rulesMore},
	{"not_on", Facts | rulesRunning},
	{"input", short | definition},
	{"input_replaced", Facts | definition},
	{"meta", short | definition},
	{"log", unbounded},
	{task.FieldCheckpoint, unbounded},
	{"id", unread},
	{"namespace", unread},
})

// withOthers adds the properties of [task.PropertyTable] that the list does not name. They are facts, and most
// decisions need them; a property that fewer or more readers need has a row above.
func withOthers(named []property) []property {
	for _, p := range task.PropertyTable {
		if !slices.ContainsFunc(named, func(n property) bool { return n.name == p.Name }) {
			named = append(named, property{p.Name, Facts | rulesMore | definition})
		}
	}
	return named
}

// roundProperties are the properties of one round. In Redis, each name has a prefix: the number of the round and a
// colon.
var roundProperties = []property{
	{"open", Facts | Result | rulesAlways | rulesMore},
	{"running", Facts | Result | rulesMore},
	{"executed", Facts | rulesAlways | rulesMore},
	{"succeeded", Facts},
	{"failed", Facts},
	{"timed_out", Facts},
	{"expired", Facts},
	{"archived", Facts},
	{"timeout", Facts},
	{"failure", Facts},
	{"lost", Facts},
	{"started", Facts | rulesMore},
	{task.RoundPrefetched, Facts | rulesMore},
	{"worker", Facts | rulesMore},
	{"claim", Facts | Result | rulesAlways | rulesMore},
	{"exit", Facts | rulesAlways | rulesMore},
	{"permanent", Facts | rulesAlways | rulesMore},
	{"program_sha256", Facts},
	{"seconds", Facts},
	{"cpu_seconds", Facts},
	{"max_rss", Facts},
	{"output_bytes", Facts},
	{"error_bytes", Facts},
	{"linked", rulesMore},
	{"released", unread},
	{"waits", rulesMore},
	{"unmet", rulesMore},
	{"progress", Facts},
	{"follow_ups", Facts},
	{"last_output", Facts},
	{task.RoundOutput, unbounded},
	{task.RoundError, unbounded},
	{task.RoundTail, unbounded},
	{task.RoundTailEnd, unbounded},
	{"result", unbounded},
	{"fetched", Facts},
	{task.RoundFiles, unbounded},
}

// namesOf returns the names of the properties that belong to one of the groups.
func namesOf(properties []property, in Fields) (names []string) {
	for _, p := range properties {
		if p.in&in != 0 {
			names = append(names, p.name)
		}
	}
	return names
}

// roundFields returns the given names with the prefix of a round.
func roundFields(round int, names []string) []string {
	fields := make([]string, len(names))
	for i, name := range names {
		fields[i] = task.RoundField(round, name)
	}
	return fields
}

var (
	headFields  = namesOf(taskProperties, Head)
	factFields  = namesOf(taskProperties, Head|Source|Facts)
	roundFacts  = namesOf(roundProperties, Facts)
	firstFields = slices.Concat(namesOf(taskProperties, rulesAlways),
		roundFields(0, namesOf(roundProperties, rulesAlways)),
		[]string{lengthOf + task.RoundField(0, task.RoundError)})
	roundResult = namesOf(roundProperties, Result)
	moreFields  = namesOf(taskProperties, rulesMore)
	roundRules  = namesOf(roundProperties, rulesMore)
	definedBy   = namesOf(taskProperties, definition)
	// settledStates are the names of the times at which a round may have finished.
	settledStates = []string{string(task.Succeeded), string(task.Failed), string(task.TimedOut), string(task.Expired)}
	runningOnly   = namesOf(taskProperties, rulesRunning)
)

// Limits for the length of a property in bytes. These limits do not apply to outputs of programs, logs and checkpoints.
const (
	longestField = task.MaxInput
	longestFact  = 4 << 10 // for the facts of a round; a call may read a thousand of them
)

// unknownProperty is returned as the length limit of a property that no valid task has.
const unknownProperty = -1

// isTextBefore reports whether the name is that of a text of a round before the round from.
func isTextBefore(from int, name string) bool {
	number, ofRound, _ := strings.Cut(name, ":")
	n, err := strconv.Atoi(number)
	return err == nil && n < from && slices.Contains([]string{task.RoundOutput, task.RoundError, "result", task.RoundTail},
		ofRound)
}

// isFiles reports whether the name is that of the files of a round. Only those who ask for them read them, because they
// may be large.
func isFiles(name string) bool { return strings.HasSuffix(name, ":"+task.RoundFiles) }

// groupsOf returns the groups of the property with this name, and the number of its round, or OfTask. If no valid task
// has the property, known is false.
func groupsOf(name string) (in Fields, round int, known bool) {
	number, ofRound, isOfRound := strings.Cut(name, ":")
	if !isOfRound {
		in, known := inOfTask[name]
		return in, OfTask, known
	}
	in, known = inOfRound[ofRound]
	round, err := strconv.Atoi(number)
	return in, round, known && err == nil && round >= 0 && strconv.Itoa(round) == number
}

var inOfTask, inOfRound = groupsByName(taskProperties), groupsByName(roundProperties)

func groupsByName(properties []property) map[string]Fields {
	in := map[string]Fields{}
	for _, p := range properties {
		in[p.name] = p.in
	}
	return in
}

// validLength returns the maximum length of the property with this name, or unknownProperty.
func validLength(name string) int {
	in, round, known := groupsOf(name)
	switch {
	case !known:
		return unknownProperty
	case in&unbounded != 0:
		return math.MaxInt
	case round == OfTask:
		return longestField
	}
	return longestFact
}
