// Package manager is for managers: programs that open tasks and handle their results (docs/manager.md).
//
// A manager connects with [Load] or [New]. [Manager.Open] opens tasks from definitions. [Manager.Run] calls a callback
// for each finished task. When the callback returns nil, Run archives the task. When all tasks are archived, Run
// returns.
//
// A callback opens follow-up tasks with [Step.Open]. One atomic step archives the callback's task and opens these
// tasks. So each of these tasks is opened once, even if the manager is killed and restarted, or runs twice. All other
// effects of a callback happen at least once, so they may happen several times.
//
// A [Pipeline] opens tasks in stages: a function opens the next stage when all tasks of a stage are finished.
//
// [Manager.Get], [Manager.List], [Manager.Page] and [Manager.Counts] read tasks. [Manager.Retry], [Manager.Cancel],
// [Manager.Requeue] and others act on tasks.
//
// Package managertest runs callbacks in tests. Package program stores programs.
package manager
