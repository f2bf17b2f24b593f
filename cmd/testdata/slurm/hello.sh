# From the examples of sbatch(1): a script with a time limit, whose srun prints the host.
cat >myscript <<'EOF'
#!/bin/sh
#SBATCH --time=1
srun hostname | sort
EOF
sbatch --parsable -N1 myscript >>ids
