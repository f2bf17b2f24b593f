// Package slurm has the script that runs a worker as a job of Slurm, for `tdf scale slurm` (docs/clusters.md).
package slurm

import _ "embed"

// Script is the text of tdf-worker.sbatch.
//
//go:embed tdf-worker.sbatch
var Script string
