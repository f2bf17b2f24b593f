#!/bin/sh
# Prints what it got: as little as a program can do.
echo "run.sh got: $*"
