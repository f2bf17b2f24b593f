// Package local runs a server, workers and a Redis for tdf up, examples and tests. Server and workers run in this
// process. The Redis is the embedded one, or a redis-server that this process starts and stops. In production, server
// and workers are separate processes.
package local
