#!/bin/sh
# wraps: loopback
# breaks: protocol.error-object
# Errors go to standard error.
real="${0%/*}/.real/${0##*/}"
[ "$CNI_COMMAND" = VERSION ] && exec "$real"
exec "$real" >&2
