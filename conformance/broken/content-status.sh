#!/bin/sh
# wraps: bridge
# breaks: lifecycle.status-without-ipam
# STATUS is always content.
real="${0%/*}/.real/${0##*/}"
[ "$CNI_COMMAND" = STATUS ] || exec "$real"
