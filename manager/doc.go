// Package manager is for those who write managers: programs that open tasks, and get each
// one back when it has succeeded, failed, timed out or expired (docs/manager.md).
//
// [Load] connects to the Redis that a manager.cfg names. [Manager.Define] fills in the
// defaults of that file, [Manager.Open] opens one task or thousands, and [Manager.Run] calls
// a callback for each task that is done and then archives it, until everything is.
//
// What a callback opens with [Task.Open] is opened in the same atomic step that archives its
// task: a manager that is killed at any moment and started again, or that runs twice, neither
// loses a follow-up nor opens it twice. What a callback does elsewhere happens at least once.
//
// The package managertest runs callbacks without processes and without waiting.
package manager
