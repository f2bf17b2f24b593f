# Jobs of one name, of which one runs at a time.
for n in 1 2 3; do
	sbatch --parsable -J alone -d singleton -o /dev/null --wrap="echo begin $n >>log; ls >/dev/null; echo end $n >>log" >>ids
done
