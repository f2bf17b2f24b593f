// Package local runs all of TDF in one process: a server, workers, and a Redis, which is the embedded one or
// a redis-server that this process starts and ends. It is what tdf up does; in earnest, server and
// workers are processes of their own.
package local
