// Package hidden hides this process from other processes of the same user. If the option [worker] user is not set,
// programs run as the worker's user. They still must not read the worker's password (docs/programs.md, "Secrets").
package hidden
