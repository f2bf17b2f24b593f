// Package slurmtest starts a real Slurm for tests: munged, slurmctld and slurmd on 127.0.0.1, with directories of their
// own. The only node is this machine. It counts its CPUs and GPUs, and does not bind jobs to them.
//
// The daemons end with the test process, even if the test process is killed. If Slurm is missing, tests fail, and say
// how to install it.
package slurmtest
