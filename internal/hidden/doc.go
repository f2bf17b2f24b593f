// Package hidden hides this process from other processes of its user. Without [worker] user, programs run as the
// worker's user, and must not read the worker's password (docs/programs.md, "Secrets").
package hidden
