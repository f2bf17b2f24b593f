cat >job.sh <<'EOF'
#!/bin/bash
#SBATCH -c 2 --ntasks 1
#SBATCH --mem=50M -t 0-1:30 --job-name="a name"
env | grep -v ALIASES | grep -E '^(SLURM_(ARRAY.*|CPUS.*|MEM.*|N.*S|JOB_(NAME|USER|UID|CPUS.*|NUM.*)|TASKS.*|PROCID|LOCALID|NODEID|GTIDS|SUBMIT_.*)|ENVIRONMENT)=' | sed 's,=/.*/,=,' | sort
[ "$SLURM_JOB_ID" = "$SLURM_JOBID" ] && echo same
EOF
sbatch --parsable -o plain.txt job.sh >>ids
sbatch --parsable -o array.txt -a 4 job.sh >>ids
SBATCH_TIMELIMIT=5 SBATCH_JOB_NAME=other sbatch --parsable -o env.txt --mem-per-cpu=10 --wrap='echo $SLURM_JOB_NAME $SLURM_MEM_PER_CPU ${SLURM_NTASKS-unset} ${SLURM_CPUS_PER_TASK-unset}' >>ids
squeue -h -j "$(tr '\n' , <ids)" -t all -o '%j %l %C %D' | sort
