// Package redisstate keeps tasks in Redis. It defines all keys and scripts of TDF (docs/redis.md).
//
// A [Store] carries out the decisions of package tdf. Three scripts move tasks: transact moves tasks and opens new
// ones, claim hands tasks to workers, and renew extends leases. Each script is atomic, and checks everything before its
// first write. A call of these scripts may be sent twice: the second time, it returns the first answer and changes
// nothing. So a Store repeats a call until Redis has answered it. During an outage, a call takes longer, and the log
// has a warning.
//
// The other scripts do this:
//   - counts, fields, names, find and rights only read data,
//   - heartbeat stores a worker's heartbeat,
//   - restore writes tasks from a dump,
//   - besteffort carries out small commands that a full Redis would refuse.
package redisstate
