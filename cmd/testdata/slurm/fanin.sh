# Jobs that depend on a whole array, and on one element.
a=$(sbatch --parsable -a 1-3 --wrap='echo $SLURM_ARRAY_TASK_ID >part$SLURM_ARRAY_TASK_ID; exit $((SLURM_ARRAY_TASK_ID == 2))' -o /dev/null)
sum=$(sbatch --parsable -d afterany:$a --wrap='cat part1 part2 part3 >sum')
element=$(sbatch --parsable -d afterok:${a}_3 --wrap='cat part3 >copy')
bad=$(sbatch --parsable -d afterok:$a --kill-on-invalid-dep=yes --wrap='touch never')
some=$(sbatch --parsable -d afternotok:$a --wrap='echo one failed')
printf '%s\n' $a $sum $element $bad $some >ids
