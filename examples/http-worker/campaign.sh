#!/bin/sh
# Opens a campaign of 100 tasks, works on them, and prints their results as CSV. It needs nothing but curl.
#
#     TDF_TOKEN=... ./campaign.sh CAMPAIGN
#
# The token has the role operator. If the script is interrupted, start it again: it opens no task twice.
set -eu
campaign=$1
api=${TDF_API:-http://127.0.0.1:7379}/api/v1
dir=$(mktemp -d)
trap '[ -z "${worker:-}" ] || kill "$worker" 2>/dev/null; rm -rf "$dir"' EXIT
trap 'exit 1' TERM INT HUP
(umask 077 && printf 'header = "Authorization: Bearer %s"\n' "$TDF_TOKEN" >"$dir/curl")
call() { curl -sS --fail-with-body -K "$dir/curl" --retry 5 "$@"; }

{
  echo number
  seq 100
} | call -X POST -H 'Content-Type: text/csv' --data-binary @- --url-query 'extend=true' --url-query 'input=number {number}' \
  --url-query 'task={"program": "shout", "campaign": "'"$campaign"'", "max_losses": 10}' "$api/sweeps" >&2

"$(dirname "$0")/worker.sh" "$campaign" >/dev/null &
worker=$!
until call "$api/groups/$campaign" | grep -q '"succeeded":100'; do
  kill -0 "$worker" # the worker ends only if it is refused
  sleep 1
done
call --url-query "group=$campaign" "$api/results"
