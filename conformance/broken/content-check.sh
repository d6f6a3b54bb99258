#!/bin/sh
# wraps: bridge
# breaks: lifecycle.check-misses-the-interface
# CHECK is always content.
real="${0%/*}/.real/${0##*/}"
[ "$CNI_COMMAND" = CHECK ] || exec "$real"
