#!/bin/sh
# wraps: ptp
# breaks: lifecycle.check-misses-the-address
# CHECK is always content.
real="${0%/*}/.real/${0##*/}"
[ "$CNI_COMMAND" = CHECK ] || exec "$real"
