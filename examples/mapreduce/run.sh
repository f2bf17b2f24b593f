#!/bin/sh
# map FILE prints the number of occurrences of each word in a file, as lines word=number.
# reduce WORD=NUMBER… adds the numbers of equal words, and prints lines of the same form.
set -eu
export LC_ALL=C
stage=$1
shift
case $stage in
map) tr '[:upper:]' '[:lower:]' <"$1" | tr -cs '[:lower:]' '\n' | sed '/^$/d' | sed 's/$/=1/' ;;
reduce) printf '%s\n' "$@" ;;
esac | awk -F = 'NF == 2 { n[$1] += $2 } END { for (word in n) printf "%s=%d\n", word, n[word] }' | sort
