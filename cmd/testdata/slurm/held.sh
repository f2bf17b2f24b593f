# A job that is held, released, and cancelled while it is held.
id=$(sbatch --parsable --hold -o held.txt --wrap='echo released')
other=$(sbatch --parsable -H -o other.txt --wrap='echo never')
squeue -h -j $id -o '%T|%r|%t|%j'
scontrol release $id
scancel $other; echo "scancel: $?"
scancel $other; echo "scancel of a finished job: $?"
scancel 99999999 2>/dev/null; echo "scancel of an unknown job: $?"
scancel 2>/dev/null; echo "scancel of nothing: $?"
printf '%s\n' $id $other >ids
