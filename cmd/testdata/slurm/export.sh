# The examples of --export in sbatch(1).
export EDITOR=vi ARG1=here ODD="it's
two lines"
show='echo "${EDITOR-none} ${ARG1-none} ${ODD-none}"'
sbatch --parsable -o 1.txt --wrap="$show" >>ids
sbatch --parsable -o 2.txt --export=EDITOR,ARG1=test --wrap="$show" >>ids
sbatch --parsable -o 3.txt --export=ALL,EDITOR=/bin/emacs,NEW=1 --wrap="$show; echo \$NEW" >>ids
sbatch --parsable -o 4.txt --export=NONE --wrap="/bin/$show" >>ids
SBATCH_EXPORT=ARG1 sbatch --parsable -o 5.txt --wrap="$show" >>ids
