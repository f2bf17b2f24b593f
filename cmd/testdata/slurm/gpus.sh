cat >job.sh <<'EOF'
#!/bin/sh
#SBATCH --gres=gpu:1
echo "$CUDA_VISIBLE_DEVICES" | tr 01 gg
EOF
for n in 1 2 3; do sbatch --parsable -o $n.txt job.sh >>ids; done
sbatch --parsable -o 4.txt --gpus=2 --wrap='echo "$CUDA_VISIBLE_DEVICES"; echo $SLURM_GPUS_ON_NODE' >>ids
