// Package process runs other people's programs: it starts one, finds everything that it starts,
// ends all of it, says what it cost, and limits it (docs/programs.md, "How a program is run").
//
// A Host is the machine as one worker uses it. Each program gets a session of its own and, where
// cgroup v2 can be had, a cgroup of its own, which holds whatever it starts. Without one, a program's
// processes are found in /proc: this process is made the one that inherits orphans (a child
// subreaper), so that everything stays below it, and what is below it is told apart by descent, by
// session, by a variable in the environment (Command.Mark), and by having been seen before.
//
// Nothing is signalled by its number alone, which may have passed to another process: see signal.
// Nothing is waited for that others in this process started: see family.reap.
//
// What a system cannot do is done without, and told by Host.Missing; Config.Require makes it an
// error instead.
package process
