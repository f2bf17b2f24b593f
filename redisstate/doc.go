// Package redisstate keeps tasks in Redis: every key, every script and every byte there is
// written here (docs/redis.md).
//
// A [Store] carries out what the rules of package tdf decide. Three scripts do all the
// writing: transact moves tasks and opens new ones, claim hands them to workers, renew
// extends their leases. (A fourth, counts, only reads.) Each is atomic, checks everything before it writes anything, and
// may be sent twice: the second call returns what the first one did and changes nothing.
// A Store relies on that and sends a call again until Redis has answered it, so a caller
// sees an outage as a call that takes long, and as a warning in the log.
package redisstate
