// Package redisstate keeps tasks in Redis (docs/redis.md).
//
// A [Store] carries out the decisions of package task. Each change of tasks is a call of a script. A script is atomic,
// and checks everything before its first write. A call may be sent twice: the second time, it returns the first answer
// and changes nothing.
//
// Three packages stand below this one. Package keys names the keys, package lua has the scripts, and package conn sends
// calls, and repeats each of them until Redis has answered. So during an outage a call takes longer, and the log has a
// warning.
//
// What is not the life of a task is in packages of its own. Those that need only the connection are fields of a Store,
// such as Groups. Those that read or move tasks stand above it, such as audit, dependencies, stages and periodics.
// Package index has the names of groups, queues and requirements.
package redisstate
