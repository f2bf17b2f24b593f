#!/bin/sh
# Prints the sum of its arguments: numbers (-7) and ranges of numbers (1..10).
set -eu

number() {
	case ${1#-} in
	'' | *[!0-9]*)
		echo "run.sh: '$1' is not a number or a range of numbers" >&2
		exit 1
		;;
	esac
}

sum=0
for argument; do
	first=${argument%%..*}
	last=${argument#*..}
	number "$first"
	number "$last"
	[ "$first" -le "$last" ] || continue
	while [ "$first" -lt "$last" ]; do
		sum=$((sum + first))
		first=$((first + 1))
	done
	sum=$((sum + last))
done
echo "$sum"
