#!/bin/sh
# wraps: host-local
# breaks: lifecycle.check-after-del
# CHECK is always content.
real="${0%/*}/.real/${0##*/}"
[ "$CNI_COMMAND" = CHECK ] || exec "$real"
