#!/bin/sh
echo "run.sh got: $*"
