// Package chaos breaks a whole TDF, and checks that nothing was lost. It has only tests.
//
// A world (world_test.go) is a Redis with an append-only file, one with replicas and sentinels, or a Redis Cluster, and
// processes: servers, one of which serves the HTTP API, workers, one of which works over HTTP, and managers with
// callbacks. Each process reaches Redis through a proxy of its own, except in a cluster. Managers open tasks of several
// kinds (kinds_test.go) as long as faults (faults_test.go) come. Each fault comes after a number of further tasks has
// finished. Then the world heals, all tasks finish, and the invariants (invariants_test.go) are checked.
//
// The faults, their order and their lengths come from a seed, which a failed test prints. The processes are not
// deterministic, so a second run with the same seed is only similar to the first one.
//
// Each mode of Redis is an implementation of the interface deployment (deployment_test.go): a single Redis, a
// primary whose replicas are promoted by sentinels (sentinel_test.go), and a cluster (cluster_test.go).
package chaos
