#!/bin/sh
# wraps: host-local
# breaks: concurrency.distinct
# Everybody gets the same address.
real="${0%/*}/.real/${0##*/}"
[ "$CNI_COMMAND" = ADD ] || exec "$real"
"$real" | sed 's,7\.[0-9]*/24,7.2/24,'
