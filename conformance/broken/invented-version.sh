#!/bin/sh
# wraps: loopback
# breaks: protocol.version-list
# VERSION lists a version that never was.
real="${0%/*}/.real/${0##*/}"
[ "$CNI_COMMAND" = VERSION ] || exec "$real"
"$real" | sed 's/"0.4.0"/"0.4.0","0.6.0"/'
