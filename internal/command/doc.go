// Package command is what tdf-server and tdf-worker have in common: their two arguments, the
// signals that stop them, and the exit status (docs/operations.md, "Exit status").
package command
