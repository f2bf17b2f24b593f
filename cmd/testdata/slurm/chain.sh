# Dependencies: the second runs after the first, the third never runs.
first=$(sbatch --parsable --wrap='echo first >>order.txt')
second=$(sbatch --parsable --dependency=afterok:$first --wrap='echo second >>order.txt; exit 1')
third=$(sbatch --parsable --depend=afterok:$first:$second --kill-on-invalid-dep=yes --wrap='echo third >>order.txt')
fourth=$(sbatch --parsable -d afternotok:$second --wrap='echo fourth >>order.txt')
fifth=$(sbatch --parsable -d afterany:$third:$fourth --wrap='echo fifth >>order.txt')
sixth=$(sbatch --parsable -d afternotok:$fourth --kill-on-invalid-dep=yes --wrap='echo sixth >>order.txt')
printf '%s\n' $first $second $third $fourth $fifth $sixth >ids
