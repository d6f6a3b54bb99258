#!/bin/sh
# wraps: host-local
# breaks: results.keys
# The result has addresses of two forms.
real="${0%/*}/.real/${0##*/}"
[ "$CNI_COMMAND" = ADD ] || exec "$real"
out=$("$real"); status=$?
printf "%s" "$out" | sed 's/"ips":/"ip4": {}, "ips":/'
exit $status
