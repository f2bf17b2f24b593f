// Package redisstate keeps tasks in Redis. All keys, scripts and values of TDF are written here (docs/redis.md).
//
// A [Store] carries out the decisions of package tdf. Three scripts move tasks: transact moves tasks and opens new
// ones, claim hands tasks to workers, and renew extends leases. Each script is atomic, and checks everything before its
// first write. Each call may be sent twice: the second time, it returns the first answer and changes nothing. So a
// Store sends a call again until Redis has answered it. A caller sees an outage as a slow call, and as a warning in the
// log.
//
// The other scripts read (counts, fields, names, find, rights), keep a worker's name (heartbeat), write tasks from a dump
// (restore), and carry out small commands that a full Redis would refuse (besteffort).
package redisstate
