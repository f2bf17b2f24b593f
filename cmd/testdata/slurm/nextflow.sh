# The calls of Nextflow's executor for Slurm, and the headers that it writes. It reads stdout and stderr together.
: >ids
submit() { # DIR OUTPUT HEADER COMMAND
	mkdir -p "$1"
	cat >"$1/.command.run" <<END
#!/bin/bash
#SBATCH -J nf-align_(${1%% *})
#SBATCH -o $2
#SBATCH --no-requeue
#SBATCH --signal B:USR2@30
$3
# NEXTFLOW TASK: align (${1%% *})
[ '$1' != d ] || exec sleep 600
set -e
set -u
on_exit() { exit_status=\${nxf_main_ret:=\$?}; printf -- \$exit_status > .exitcode; exit \$exit_status; }
on_term() { set +e; kill \$pid; }
trap on_exit EXIT
trap on_term TERM INT USR2
(set -o pipefail; ($4) | tee .command.out) &
pid=\$!
wait \$pid || nxf_main_ret=\$?
END
	(cd "$1" && sbatch .command.run 2>&1; rm .command.run) | tee -a submitted
	sed -n 's/^Submitted batch job //p' submitted >ids
}
submit a "$PWD/a/.command.log" '#SBATCH -c 2
#SBATCH -t 00:01:00
#SBATCH --mem 50M' 'echo one $SLURM_CPUS_PER_TASK'
submit b "$PWD/b/.command.log" '#SBATCH -t 51:00:00' 'echo two; exit 7'
submit 'some data' "\"$PWD/some\\ data/.command.log\"" '' 'echo three'
submit d /dev/null '' ''
submit e /dev/null '#SBATCH --array 0-1' 'echo $SLURM_ARRAY_TASK_ID >>$SLURM_ARRAY_TASK_ID'
look() { squeue --noheader -o '%i %t' -t all -u "$(id -un)" 2>&1 | grep -E "^($(paste -sd '|' ids))(_| )" | sort -n; }
[ "$(wc -l <ids)" = 5 ] || exit 1
set -- $(cat ids)
until look | grep -q "^$4 R" && [ "$(look | grep -c ' [CF]D*$')" = 5 ]; do sleep 0.1; done
scancel "$4" "$1" 2>&1; echo "scancel: $?"
until look | grep -q "^$4 CA"; do sleep 0.1; done
look
