# From the examples of sbatch(1): the script comes from stdin.
sbatch --parsable -N1 -n 1 -o stdin-%j.txt <<EOF >>ids
#!/bin/sh
echo "$((1 + 1)) arguments"
srun echo step \$SLURM_STEP_ID
srun echo step 2>&1
EOF
