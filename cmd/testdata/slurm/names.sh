# Names with quotes and other odd characters.
for name in 'it is' "o'clock" '"q"' '$HOME' '-x' 'a%j' 'größe' '`id`'; do
	sbatch --parsable -J "$name" -o 'out_%x.txt' --wrap='echo "$SLURM_JOB_NAME"' >>ids
done
