// Package steer has the commands of tdf that change tasks, limits, workers and stored programs.
package steer
