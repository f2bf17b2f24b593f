# A step function, as in the text of --array in sbatch(1), and a list of indexes with a limit.
cat >job.sh <<'EOF'
#!/bin/bash
#SBATCH --array=0-15:4
#SBATCH --output=out_%A_%3a.txt
echo "$SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT, $SLURM_ARRAY_TASK_MIN to $SLURM_ARRAY_TASK_MAX by $SLURM_ARRAY_TASK_STEP"
exit $((SLURM_ARRAY_TASK_ID / 8))
EOF
sbatch --parsable job.sh >>ids
sbatch --parsable -a 1,3,7-8%2 job.sh >>ids
sbatch --parsable --array=5 --wrap='echo $SLURM_ARRAY_TASK_COUNT' >>ids
