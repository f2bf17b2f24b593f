mkdir sub
cat >job.sh <<'EOF'
#!/bin/sh
#SBATCH --chdir=sub
#SBATCH -o out.txt -e err.txt --open-mode=append   # one file each
#SBATCH --input=in.txt
echo "in ${PWD##*/}, submitted in ${SLURM_SUBMIT_DIR##*/}"
cat
echo problem >&2
EOF
echo data >sub/in.txt
echo kept >sub/out.txt
sbatch --parsable --chdir="$PWD/sub" "$PWD/job.sh" >>ids
sbatch --parsable -o 100%%-%u-%x.txt -J '50%j' --wrap 'echo percent' >>ids
sbatch --parsable -o 'plain\\%j.txt' --wrap 'echo plain' >>ids
