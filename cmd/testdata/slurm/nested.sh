# A job submits another one, and waits for it.
cat >outer.sh <<'EOF'
#!/bin/bash
#SBATCH -o outer.txt
sbatch --wait -Q -o inner.txt --wrap='echo inner ${SLURM_ARRAY_TASK_ID-none}; exit 4'
echo "inner ended with $?"
EOF
sbatch --parsable -a 1 outer.sh >>ids
