// Package process starts a program, and finds all processes that the program starts. It limits and ends these
// processes, and measures the resources that they use (docs/programs.md, "How a program is run").
//
// A Host represents this machine for one worker. Each program gets a session of its own. If cgroup v2 is available, it
// also gets a cgroup of its own, which contains all of the program's processes. Without cgroups, the Host finds the
// processes in /proc. This process becomes a child subreaper: it inherits orphans, so all processes of programs stay
// below it. The Host assigns these processes to programs by descent, by session, by a variable in the environment
// (Command.Mark), and by earlier scans.
//
// No process is signalled by its PID alone, since another process may have the PID by now (see signal). The Host
// never reaps a process that other code of this process started (see family.reap).
//
// If the system has no cgroups, the Host works without them, unless a limit needs them.
package process
