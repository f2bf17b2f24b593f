// Package command contains the common code of tdf-server and tdf-worker: arguments, signals and exit statuses
// (docs/operations.md, "Exit status").
package command
