# Pending elements of an array are cancelled: one, and then the rest but one.
a=$(sbatch --parsable --hold -a 1-6%2 -o 'el_%a.txt' --wrap='echo $SLURM_ARRAY_TASK_ID')
scancel ${a}_2
squeue -h -j $a -o '%i %t %F' | sed "s/$a/ID/g"
scancel ${a}_[4-5] ${a}_6
squeue -h -r -j $a -o '%i %K %T' | sed "s/$a/ID/g" | sort
scontrol release $a
echo $a >>ids
