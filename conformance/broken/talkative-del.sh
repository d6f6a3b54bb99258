#!/bin/sh
# wraps: bridge
# breaks: lifecycle.del
# DEL prints something.
real="${0%/*}/.real/${0##*/}"
"$real"; status=$?
[ "$CNI_COMMAND" = DEL ] && echo "{}"
exit $status
