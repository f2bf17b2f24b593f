// Package look has the commands of tdf that show tasks and workers, and change nothing.
package look
