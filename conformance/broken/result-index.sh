#!/bin/sh
# wraps: bridge
# breaks: results.indices
# An address names an interface that is not in the list.
real="${0%/*}/.real/${0##*/}"
[ "$CNI_COMMAND" = ADD ] || exec "$real"
out=$("$real"); status=$?
printf "%s" "$out" | sed 's/"interface": *2/"interface": 3/'
exit $status
