#!/bin/sh
# wraps: bridge
# breaks: results.ip-version
# Addresses say their family in every version.
real="${0%/*}/.real/${0##*/}"
[ "$CNI_COMMAND" = ADD ] || exec "$real"
out=$("$real"); status=$?
printf "%s" "$out" | sed 's/"address":/"version": "4", "address":/'
exit $status
