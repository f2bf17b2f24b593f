// Package hidden hides this process from other processes of the same user. Without [worker] user, programs run as the
// worker's user, but they must not read the worker's password (docs/programs.md, "Secrets").
package hidden
