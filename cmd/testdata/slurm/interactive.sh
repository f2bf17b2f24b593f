# srun without a job, in the foreground.
srun -n1 echo hello; echo $?
srun sh -c 'echo out; echo err >&2; exit 5' 2>/dev/null; echo $?
srun -n1 -J name sh -c 'echo $SLURM_JOB_NAME $SLURM_NTASKS'; echo $?
sbatch --parsable --wrap='srun -n 1 sh -c "exit 6"; exit $?' -o /dev/null >>ids
