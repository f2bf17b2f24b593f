// Package skuld serves the calls of the task queue Skuld over HTTP (docs/skuld.md). A Skuld task is a task of the
// program "skuld" without a source, in the campaign "skuld". Its Skuld id is its unique key, and a claim is a round:
// the id of the claim is the number of the round.
//
// Each call is true when it is answered: a completed task has succeeded, and a claimed task runs. Nothing is kept in
// this process.
package skuld
