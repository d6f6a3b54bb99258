#!/bin/sh
# wraps: bridge
# breaks: results.true-addresses
# The address is another one than the interface has.
real="${0%/*}/.real/${0##*/}"
[ "$CNI_COMMAND" = ADD ] || exec "$real"
out=$("$real"); status=$?
printf "%s" "$out" | sed 's,7\.2/24,7.99/24,'
exit $status
