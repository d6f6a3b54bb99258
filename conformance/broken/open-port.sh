#!/bin/sh
# wraps: portmap
# breaks: traffic.published-port
# The port stays open after DEL.
real="${0%/*}/.real/${0##*/}"
[ "$CNI_COMMAND" = DEL ] || exec "$real"
