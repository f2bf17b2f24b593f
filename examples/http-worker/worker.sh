#!/bin/sh
# A worker over HTTP that needs nothing but curl (docs/http.md, "Workers").
#
#     TDF_TOKEN=... ./worker.sh [NAME]
#
# It runs the program "shout" of tasks without a source. It may be killed at any point: its tasks then run again.
set -u
name=${1:-$(uname -n)}
api=${TDF_API:-http://127.0.0.1:7379}/api/v1/work
lease=${TDF_LEASE:-60} # seconds after which the task of a killed worker runs again
dir=$(mktemp -d) || exit 1
trap '[ -z "${renewing:-}" ] || kill "$renewing" 2>/dev/null; rm -rf "$dir"' EXIT
trap 'exit 1' TERM INT HUP

# The token is in a file, because all users of the machine can read the arguments of a program.
(umask 077 && printf 'header = "Authorization: Bearer %s"\n' "$TDF_TOKEN" >"$dir/curl")

# call METHOD PATH BODY [HEADER]: makes a call until the server has answered it, and sets answer. Each call may be made
# again: the answer is the same.
call() {
  while :; do
    if answer=$(printf %s "$3" | curl -s -K "$dir/curl" -X "$1" --max-time 90 -H 'Content-Type: application/json' \
      -H "${4:-Accept: */*}" --data-binary @- -w '\n%{http_code}' "$api$2"); then
      status=${answer##*
}
      answer=${answer%
*}
    else
      status=000 # the answer is not whole
    fi
    case $status in
    2*) return 0 ;;
    409) [ -z "$2" ] || return 1 ;; # otherwise, the name is taken
    000 | 429 | 503) ;;
    *) return 1 ;;
    esac
    printf '%s\n' "waiting: $answer" >&2
    sleep 1
    [ -e "$dir/curl" ] || return 1 # the worker has ended
  done
}

# text NAME, number NAME: print a member of the answer. In a JSON text, " is \", so the patterns match nothing in a text.
text() { printf %s "$answer" | sed -n 's/.*"'"$1"'":"\([^"]*\)".*/\1/p'; }
number() { printf %s "$answer" | sed -n 's/.*"'"$1"'":\([0-9]*\).*/\1/p'; }

# renew RUN: renews a claim as long as this shell lives.
renew() {
  while sleep "$((lease > 3 ? lease / 3 : 1))" && kill -0 $$ 2>/dev/null; do
    call POST "/$session/renewals" "{$1}" || return
  done
}

shout() { tr '[:lower:]' '[:upper:]'; }

key=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
call POST "" '{"name":"'"$name"'","programs":["shout"],"lease":'"$lease"'}' "Idempotency-Key: $key" || {
  printf '%s\n' "$answer" >&2
  exit 1
}
session=$(text session)
claims=0
while :; do
  claims=$((claims + 1)) # the number makes the claim repeatable
  call POST "/$session/claims" '{"wait":20,"base64":true,"number":'"$claims"'}' || {
    printf '%s\n' "$answer" >&2
    exit 1
  }
  claim=$(text claim)
  [ -n "$claim" ] || continue
  run='"id":'$(number id)',"round":'$(number round)',"claim":"'$claim'"'
  text input_base64 | base64 -d >"$dir/input"
  renew "$run" &
  renewing=$!
  if shout <"$dir/input" >"$dir/output" 2>"$dir/error"; then action=complete; else action=fail; fi
  kill "$renewing" 2>/dev/null
  call POST "/$session/reports" '{'"$run"',"action":"'$action'","stdout_base64":"'"$(base64 <"$dir/output" | tr -d '\n')"'","stderr_base64":"'"$(base64 <"$dir/error" | tr -d '\n')"'"}'
done
