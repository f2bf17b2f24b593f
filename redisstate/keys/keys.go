// Package keys names the keys of a namespace in Redis (docs/redis.md).
package keys

import (
	"strconv"
	"strings"

	"github.com/tdf-framework/tdf/internal/rules"
	"github.com/tdf-framework/tdf/internal/task"
)

// Names builds the names of the keys of a namespace (docs/redis.md).
type Names struct {
	ns     string
	prefix string // of all keys
}

// Of returns the names of the keys of a namespace.
func Of(namespace string) Names { return Names{ns: namespace, prefix: namespace + ":"} }

// InCluster returns the names of the keys of a namespace in a Redis Cluster ([task.InCluster]).
func InCluster(namespace string) Names {
	beginning, _ := task.InCluster(namespace) // others refuse a namespace that cannot be in a cluster
	return Names{ns: namespace, prefix: beginning + ":"}
}

// Namespace returns the name of the namespace.
func (k Names) Namespace() string { return k.ns }

// Key returns the key with a name in the namespace. Outside of this package, it names only the common beginning of
// several keys, and the keys of tests.
func (k Names) Key(name string) string { return k.prefix + name }

// List returns the key of the sorted set that holds the ids of the tasks in state s.
func (k Names) List(s task.State) string { return k.Key(string(s)) }

// Lists returns the keys of all lists.
func (k Names) Lists() (keys []string) {
	for _, list := range rules.Lists {
		keys = append(keys, k.List(list))
	}
	return keys
}

// Pattern returns the glob pattern of the keys whose names in the namespace match a pattern.
func (k Names) Pattern(names string) string { return patternEscaper.Replace(k.prefix) + names }

// patternEscaper escapes the special characters in a text, so that a pattern matches the text itself.
var patternEscaper = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)

// OpenSet returns the key of the set with a name: the open tasks with a requirement, those of a group, or those that
// are held for a reason. The name "" is that of the list of the open tasks without a place.
func (k Names) OpenSet(name string) string {
	switch {
	case name == "":
		return k.List(task.Open)
	case task.LimitOf(name) != "" || task.GroupOf(name) != "" || task.SourceOf(name) != "":
		return k.Key("held:" + name)
	}
	return k.Key("open:" + name)
}

func (k Names) Heads(queue string) string      { return k.Key("heads:" + queue) }
func (k Names) Serves(offer string) string     { return k.Key("serves:" + offer) }
func (k Names) Later() string                  { return k.Key("later") }
func (k Names) Requirements() string           { return k.Key("requirements") }
func (k Names) RequirementsOf(o string) string { return k.Key("requirements_of:" + o) }
func (k Names) First() string                  { return k.Key("first") }
func (k Names) Held() string                   { return k.Key("held") }
func (k Names) Failing() string                { return k.Key("failing") }
func (k Names) Kept() string                   { return k.Key("kept") }

// Task returns the key of the hash of one task.
func (k Names) Task(id int64) string { return k.TaskPrefix() + strconv.FormatInt(id, 10) }

func (k Names) TaskPrefix() string  { return k.Key("task:") }
func (k Names) GroupPrefix() string { return k.Key("group:") }
func (k Names) QueuePrefix() string { return k.Key("queue:") }

func (k Names) UpdatesPrefix() string { return k.Key("updates:") }
func (k Names) FollowPrefix() string  { return k.Key("follow:") }

// Group returns the key of the index of a group: the group's tasks, ordered by state and id.
func (k Names) Group(name string) string { return k.GroupPrefix() + name }

// Queue returns the key of the index of a queue, which has the tasks of the queue in the same order.
func (k Names) Queue(name string) string { return k.QueuePrefix() + name }

// Due returns the key of the sorted set `due`. Its scores are the times at which the server must settle the tasks.
func (k Names) Due() string { return k.Key("due") }

// Unlinked returns the key of the set of the waiting tasks that the server must link. The keys below it hold the
// endings that the server must handle, and the tasks that wait for a task or a group.
func (k Names) Unlinked() string                    { return k.Key("unlinked") }
func (k Names) Ended() string                       { return k.Key("ended") }
func (k Names) AwaitedGroups() string               { return k.Key("awaited_groups") }
func (k Names) DependentsPrefix() string            { return k.Key("dependents:") }
func (k Names) GroupDependentsPrefix() string       { return k.Key("group_dependents:") }
func (k Names) GroupDependents(group string) string { return k.GroupDependentsPrefix() + group }

func (k Names) TaskID() string                    { return k.Key("task_id") }
func (k Names) ReplicationID() string             { return k.Key("replication_id") }
func (k Names) Unique() string                    { return k.Key("unique") }
func (k Names) Settings() string                  { return k.Key("settings") }
func (k Names) Groups() string                    { return k.Key("groups") }
func (k Names) GroupNames() string                { return k.Key("group_names") }
func (k Names) QueueNames() string                { return k.Key("queue_names") }
func (k Names) Pipelines() string                 { return k.Key("pipelines") }
func (k Names) Periodic() string                  { return k.Key("periodic") }
func (k Names) Definitions(name string) string    { return k.Key("definitions:" + name) }
func (k Names) Paused() string                    { return k.Key("paused") }
func (k Names) Limits() string                    { return k.Key("limits") }
func (k Names) Limited(key string) string         { return k.Key("limited:" + key) }
func (k Names) Starts(key string) string          { return k.Key("starts:" + key) }
func (k Names) Schema() string                    { return k.Key("schema") }
func (k Names) Rights() string                    { return k.Key("rights") }
func (k Names) Confirmed() string                 { return k.Key("confirmed") }
func (k Names) Absent() string                    { return k.Key("absent") }
func (k Names) Calls(boot string) string          { return k.Key("calls:" + boot) }
func (k Names) Servers() string                   { return k.Key("servers") }
func (k Names) GraceUntil() string                { return k.Key("calm") }
func (k Names) Leap() string                      { return k.Key("leap") }
func (k Names) Managers() string                  { return k.Key("managers") }
func (k Names) Handlings() string                 { return k.Key("manager_groups") }
func (k Names) CallbackLeases() string            { return k.Key("callback_leases") }
func (k Names) LeasedBy(run string) string        { return k.Key("callback_leases:" + run) }
func (k Names) Callbacks() string                 { return k.Key("callbacks") }
func (k Names) CallbacksFailed() string           { return k.Key("callbacks_failed") }
func (k Names) Workers() string                   { return k.Key("workers") }
func (k Names) Worker(name string) string         { return k.Key("worker:" + name) }
func (k Names) Claims(worker string) string       { return k.Key("claims:" + worker) }
func (k Names) DeadWorkers() string               { return k.Key("dead_workers") }
func (k Names) WorkerNames() string               { return k.Key("worker") }
func (k Names) WorkerCount() string               { return k.Key("worker_id") }
func (k Names) WorkerNumber(name string) string   { return k.Key("worker_id:" + name) }
func (k Names) WakeOpen() string                  { return k.Key("wake:open") }
func (k Names) WakeFor(requirement string) string { return k.Key("wake:" + requirement) }
func (k Names) WakeRequirements() string          { return k.Key("wake:requirements") }
func (k Names) WakeServer() string                { return k.Key("wake:server") }
func (k Names) WakeManager(boot string) string    { return k.Key("wake:manager:" + boot) }
func (k Names) Program(sha256 string) string      { return k.Key("program:" + sha256) }
func (k Names) Programs() string                  { return k.Key("programs") }
func (k Names) ProgramsUsed() string              { return k.Key("programs_used") }
func (k Names) ProgramOwners() string             { return k.Key("program_owners") }
func (k Names) Blobs() string                     { return k.Key("blobs") }
func (k Names) BlobsUsed() string                 { return k.Key("blobs_used") }
func (k Names) BlobOwners() string                { return k.Key("blob_owners") }
func (k Names) BlobPlace() string                 { return k.Key("blob_place") }
func (k Names) Tokens() string                    { return k.Key("tokens") }
func (k Names) TokensUsed() string                { return k.Key("tokens_used") }
func (k Names) Sessions(holder string) string     { return k.Key("sessions:" + holder) }
func (k Names) Login(digest string) string        { return k.Key("login:" + digest) }

// Dashboard returns the key of the address of the dashboard for a host, or for all hosts if it is "".
func (k Names) Dashboard(host string) string {
	if host == "" {
		return k.Key("dashboard_at")
	}
	return k.Key("dashboard_at:" + host)
}

func (k Names) Notices() string    { return k.Key("notices") }
func (k Names) NoticesDue() string { return k.Key("notices_due") }
func (k Names) Noticed() string    { return k.Key("noticed") }

// Activity returns the key of the sorted set of the queues that have counts, and ActivityOf the key of the counts of
// one queue.
func (k Names) Activity() string               { return k.Key("activity") }
func (k Names) ActivityPrefix() string         { return k.Key("activity:") }
func (k Names) Counted(boot string) string     { return k.Key("counted:" + boot) }
func (k Names) ActivityOf(queue string) string { return k.ActivityPrefix() + queue }

// History returns the key of the counts that the namespace had in a step. Steps are numbered since 1970.
func (k Names) History(seconds, step int64) string {
	of := strconv.FormatInt(seconds, 10) + ":" + strconv.FormatInt(step, 10)
	return k.Key("history:" + of)
}

// Kinds returns the keys that every namespace may have, and the Redis type of each. If a key has another type, another
// program has written it.
func (k Names) Kinds() map[string]string {
	kinds := map[string]string{
		k.Due(): "zset", k.TaskID(): "string", k.Schema(): "string", k.ReplicationID(): "string",
		k.Servers():  "zset",
		k.Managers(): "zset", k.Handlings(): "hash", k.CallbackLeases(): "hash",
		k.Callbacks(): "hash", k.CallbacksFailed(): "zset",
		k.Workers(): "zset", k.DeadWorkers(): "zset", k.WorkerNames(): "set",
		k.WorkerCount(): "string",
		k.Programs():    "zset", k.ProgramsUsed(): "zset", k.ProgramOwners(): "hash", k.GraceUntil(): "string",
		k.Blobs(): "zset", k.BlobsUsed(): "zset", k.BlobOwners(): "hash", k.BlobPlace(): "string",
		k.Confirmed(): "string",
		k.Leap():      "hash", k.Unique(): "hash", k.Settings(): "hash",
		k.Groups(): "hash", k.GroupNames(): "zset", k.QueueNames(): "zset", k.Pipelines(): "hash", k.Periodic(): "hash",
		k.Requirements(): "zset", k.First(): "hash", k.Later(): "zset", k.Held(): "zset", k.Kept(): "hash",
		k.Paused(): "hash", k.Unlinked(): "zset", k.Ended(): "zset",
		k.AwaitedGroups(): "zset",
		k.Limits():        "hash",
		k.WakeOpen():      "list", k.WakeServer(): "list",
		k.Tokens(): "hash", k.TokensUsed(): "zset", k.Activity(): "zset", k.Notices(): "hash", k.NoticesDue(): "zset",
		k.Noticed(): "hash", k.Dashboard(""): "string",
	}
	for _, list := range rules.Lists {
		kinds[k.List(list)] = "zset"
	}
	return kinds
}
