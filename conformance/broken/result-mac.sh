#!/bin/sh
# wraps: ptp
# breaks: results.true-mac
# The MAC address is made up.
real="${0%/*}/.real/${0##*/}"
[ "$CNI_COMMAND" = ADD ] || exec "$real"
out=$("$real"); status=$?
printf "%s" "$out" | sed 's/"mac": *"[^"]*"/"mac": "02:00:00:00:00:01"/'
exit $status
