sbatch --parsable -J three --wrap='echo before; exit 3' >>ids
sbatch --parsable -J killed --wrap='kill -9 $$' >>ids
sbatch --parsable -J segfault --wrap='kill -SEGV $$' -e seg.err >>ids
sbatch --parsable -J missing --wrap='exec /no/such/command' -o /dev/null >>ids
sbatch --parsable -J nodir -o no/such/dir/out --wrap='echo never' >>ids
sbatch --parsable -J large --wrap='exit 300' >>ids
