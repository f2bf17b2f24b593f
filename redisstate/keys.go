package redisstate

import (
	"strconv"

	"github.com/tdf-framework/tdf"
)

// Keys builds the names of the keys of a namespace (docs/redis.md).
type Keys struct{ ns string }

func (k Keys) key(name string) string { return k.ns + ":" + name }

// List returns the key of the sorted set that holds the ids of the tasks in state s.
func (k Keys) List(s tdf.State) string { return k.key(string(s)) }

// place returns the key of the sorted set of the open tasks with a place. The place "" has the other open tasks.
func (k Keys) place(place string) string {
	if place == "" {
		return k.List(tdf.Open)
	}
	return k.key("open:" + place)
}

func (k Keys) levels(partition string) string { return k.key("levels:" + partition) }
func (k Keys) later(partition string) string  { return k.key("later:" + partition) }
func (k Keys) heads(queue string) string      { return k.key("heads:" + queue) }
func (k Keys) coming(queue string) string     { return k.key("coming:" + queue) }

// Task returns the key of the hash of one task.
func (k Keys) Task(id int64) string { return k.taskPrefix() + strconv.FormatInt(id, 10) }

func (k Keys) taskPrefix() string  { return k.key("task:") }
func (k Keys) groupPrefix() string { return k.key("group:") }

func (k Keys) updatesPrefix() string { return k.key("updates:") }
func (k Keys) followPrefix() string  { return k.key("follow:") }

// Group returns the key of the index of a group: the group's tasks, ordered by state and id.
func (k Keys) Group(name string) string { return k.groupPrefix() + name }

// Due returns the key of the sorted set `due`. Its scores are the times at which the server must settle the tasks.
func (k Keys) Due() string { return k.key("due") }

// unlinked holds the waiting tasks that the server must link, ended the endings that it must handle, dependents the tasks that wait for a task, and groupDependents those that
// wait for a group.
func (k Keys) unlinked() string                    { return k.key("unlinked") }
func (k Keys) ended() string                       { return k.key("ended") }
func (k Keys) awaitedGroups() string               { return k.key("awaited_groups") }
func (k Keys) dependentsPrefix() string            { return k.key("dependents:") }
func (k Keys) groupDependentsPrefix() string       { return k.key("group_dependents:") }
func (k Keys) groupDependents(group string) string { return k.groupDependentsPrefix() + group }

func (k Keys) taskID() string                   { return k.key("task_id") }
func (k Keys) unique() string                   { return k.key("unique") }
func (k Keys) settings() string                 { return k.key("settings") }
func (k Keys) groups() string                   { return k.key("groups") }
func (k Keys) pipelines() string                { return k.key("pipelines") }
func (k Keys) definitions(name string) string   { return k.key("definitions:" + name) }
func (k Keys) partitions() string               { return k.key("partitions") }
func (k Keys) paused() string                   { return k.key("paused") }
func (k Keys) limits() string                   { return k.key("limits") }
func (k Keys) limitsDue() string                { return k.key("limits_due") }
func (k Keys) limitsUsed() string               { return k.key("limits_used") }
func (k Keys) limited(key string) string        { return k.key("limited:" + key) }
func (k Keys) starts(key string) string         { return k.key("starts:" + key) }
func (k Keys) returnedPrefix() string           { return k.key("returned:") }
func (k Keys) schema() string                   { return k.key("schema") }
func (k Keys) calls(boot string) string         { return k.key("calls:" + boot) }
func (k Keys) servers() string                  { return k.key("servers") }
func (k Keys) graceUntil() string               { return k.key("calm") }
func (k Keys) leap() string                     { return k.key("leap") }
func (k Keys) managers() string                 { return k.key("managers") }
func (k Keys) workers() string                  { return k.key("workers") }
func (k Keys) worker(name string) string        { return k.key("worker:" + name) }
func (k Keys) workerNames() string              { return k.key("worker") }
func (k Keys) workerCount() string              { return k.key("worker_id") }
func (k Keys) workerNumber(name string) string  { return k.key("worker_id:" + name) }
func (k Keys) wakeOpen() string                 { return k.key("wake:open") }
func (k Keys) wakePartition(name string) string { return k.key("wake:" + name) }
func (k Keys) wakeServer() string               { return k.key("wake:server") }
func (k Keys) wakeManager(boot string) string   { return k.key("wake:manager:" + boot) }
func (k Keys) program(sha256 string) string     { return k.key("program:" + sha256) }
func (k Keys) programs() string                 { return k.key("programs") }
func (k Keys) programsUsed() string             { return k.key("programs_used") }
func (k Keys) loading() string                  { return k.key("loading") }
func (k Keys) passedPrefix() string             { return k.key("passed:") }

func (k Keys) successes(program string) string { return k.key("successes:" + program) }

// kinds returns the keys that every namespace may have, and the Redis type of each. If a key has another type, another
// program has written it.
func (k Keys) kinds() map[string]string {
	kinds := map[string]string{
		k.Due(): "zset", k.taskID(): "string", k.schema(): "string", k.servers(): "zset",
		k.managers(): "zset", k.workers(): "zset", k.workerNames(): "set", k.workerCount(): "string",
		k.programs(): "zset", k.programsUsed(): "zset", k.graceUntil(): "string", k.leap(): "hash", k.unique(): "hash", k.settings(): "hash",
		k.groups(): "hash", k.pipelines(): "hash", k.partitions(): "hash", k.paused(): "hash", k.unlinked(): "zset", k.ended(): "zset", k.awaitedGroups(): "zset",
		k.limits(): "hash", k.limitsDue(): "zset", k.limitsUsed(): "zset", k.wakeOpen(): "list", k.wakeServer(): "list",
	}
	for _, list := range tdf.Lists {
		kinds[k.List(list)] = "zset"
	}
	return kinds
}
