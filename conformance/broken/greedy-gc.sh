#!/bin/sh
# wraps: host-local
# breaks: lifecycle.gc-keeps-the-valid
# GC frees everything.
real="${0%/*}/.real/${0##*/}"
[ "$CNI_COMMAND" = GC ] || exec "$real"
sed 's/"containerID":"[^"]*"/"containerID":"nobody"/g' | "$real"
