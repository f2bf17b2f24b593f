cat >args.sh <<'EOF'
#!/usr/bin/env bash
printf '<%s>' "$@"
EOF
sbatch --parsable -o out.txt args.sh 'a b' '' "it's" '$HOME' '*' --array=1 "$(printf 'x\ny')" >>ids
