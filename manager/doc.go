// Package manager is for managers: programs that open tasks and handle their results (docs/manager.md).
//
// A manager connects with [Load] or [New]. [Manager.Open] opens tasks from definitions. [Manager.Run] calls a callback for each task
// that succeeded, failed, timed out or expired, and archives the task when its callback returns nil. Run returns when all tasks are
// archived.
//
// A callback opens further tasks with [Finished.Open]. One atomic step archives the callback's task and opens its tasks. So a manager
// may be killed and restarted at any moment, or run twice: each of these tasks is opened once. Other effects of a callback happen
// at least once.
//
// [Manager.Get], [Manager.List], [Manager.Page] and [Manager.Counts] read tasks. [Manager.Retry], [Manager.Cancel],
// [Manager.Requeue] and others act on tasks.
//
// Package managertest runs callbacks in tests. Package program stores programs. Package admin explains and watches tasks and workers.
package manager
