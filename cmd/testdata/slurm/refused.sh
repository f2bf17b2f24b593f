# What sbatch refuses: nothing is submitted.
try() { "$@" >out 2>err && echo "accepted $(cat out)" || echo "refused $(cat out)"; }
printf 'echo no first line\n' >a.sh
printf '#!/bin/sh\r\necho DOS\r\n' >b.sh
printf '#!/bin/sh\n\0\n' >c.sh
: >d.sh
printf '#!/bin/sh\n#SBATCH --no-such-option\n' >e.sh
printf '#!/bin/sh\n#SBATCH --array=5-1\n' >f.sh
printf '#!/bin/sh\ntrue\n#SBATCH --no-such-option\n' >g.sh
for f in a b c d e f missing; do try sbatch --parsable $f.sh; done
try sbatch --array=1-2000000000 --wrap=true
try sbatch --time=x --wrap=true
try sbatch --wrap=true argument
try sbatch --mem=lots --wrap=true
try sbatch --test-only --wrap=true
sbatch --parsable g.sh >>ids
rm -f out err
