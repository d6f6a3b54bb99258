#!/bin/sh
# wraps: loopback
# breaks: protocol.version-does-not-wait
# VERSION reads standard input to its end.
real="${0%/*}/.real/${0##*/}"
if [ "$CNI_COMMAND" = VERSION ]; then cat >/dev/null; fi
exec "$real"
