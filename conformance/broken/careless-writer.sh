#!/bin/sh
# wraps: loopback
# breaks: protocol.full-stdout
# Nobody looks whether the answer was written.
real="${0%/*}/.real/${0##*/}"
"$real"
[ "$CNI_COMMAND" = VERSION ] && exit 0
