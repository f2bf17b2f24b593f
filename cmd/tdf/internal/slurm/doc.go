// Package slurm is the commands of Slurm on TDF: sbatch, squeue, scancel, sacct, scontrol and srun
// (docs/from-slurm.md). tdf slurm-commands writes small programs that call tdf slurm COMMAND.
//
// A job is a task, whose id is the id of the job. The elements of an array are tasks of one group; the id of the first
// one is the id of the array. The meta of a task has what the commands of Slurm show about the job (record). The script
// and the environment of a job are a program, whose run.sh (wrapper) sets the variables of Slurm.
package slurm
