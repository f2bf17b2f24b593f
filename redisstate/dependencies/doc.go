// Package dependencies reads which tasks and groups wait for each other, for people and for retries of a whole branch.
// The claims and the server need none of this: how a task begins to wait, and how its wait ends, is in link.go and
// ending.go of package redisstate.
package dependencies
