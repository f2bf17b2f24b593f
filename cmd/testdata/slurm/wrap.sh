sbatch --parsable --wrap="echo 'two  words' \"\$SLURM_JOB_NAME\" >wrapped.txt" --output=/dev/null >>ids
sbatch --parsable -Jlist --wrap='for i in a b; do echo $i; done' -o 'list_%x.txt' >>ids
