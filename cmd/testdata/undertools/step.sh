#!/bin/sh
# step.sh FILE TEXT: writes the file when go is there. It fails if another process is writing the file.
exec 9>"$1.lock"
flock -n 9 || { echo "two processes write $1" >&2; exit 9; }
echo start >>"$1.starts"
until [ -e go ]; do sleep 0.1; done
echo "$2" >"$1"
