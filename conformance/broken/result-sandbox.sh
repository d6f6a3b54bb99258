#!/bin/sh
# wraps: macvlan
# breaks: results.container-interface
# The result does not say in which namespace the interface is.
real="${0%/*}/.real/${0##*/}"
[ "$CNI_COMMAND" = ADD ] || exec "$real"
out=$("$real"); status=$?
printf "%s" "$out" | sed 's/"sandbox": *"[^"]*"/"sandbox": ""/'
exit $status
