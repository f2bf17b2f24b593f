cat >job.py <<'EOF'
#!/usr/bin/env python3
#SBATCH --array=1-2
#SBATCH --output=py_%a.txt
import os, sys
print(int(os.environ["SLURM_ARRAY_TASK_ID"]) ** 2, flush=True)
sys.exit(7)
EOF
sbatch --parsable job.py >>ids
