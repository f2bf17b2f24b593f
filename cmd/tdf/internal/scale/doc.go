// Package scale has the command tdf scale, which submits workers to a cluster while tasks wait (docs/clusters.md). In
// plan.go is the rule for the number of jobs, in health.go the rule for pauses, and in slurm.go everything about Slurm.
package scale
