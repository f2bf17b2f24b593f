// Package redisstate keeps tasks in Redis: every key, every script and every byte there is
// written here (docs/redis.md).
//
// A [Store] carries out the decisions of package tdf. Three scripts move tasks: transact moves
// tasks and opens new ones, claim hands them to workers, and renew extends their leases. Each is
// atomic. It checks everything before its first write. It may be sent twice: the second call
// returns the first one's answer and changes nothing. So a Store sends a call again until Redis
// has answered it. A caller sees an outage as a call that takes long, and as a warning in the log.
//
// The other scripts read (counts, fields, names, find, rights), keep a worker's name (sign), write
// tasks from a dump (put), and carry out small commands that a full Redis would refuse (note).
package redisstate
