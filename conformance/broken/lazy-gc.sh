#!/bin/sh
# wraps: host-local
# breaks: lifecycle.gc-frees-the-lost
# GC frees nothing.
real="${0%/*}/.real/${0##*/}"
[ "$CNI_COMMAND" = GC ] || exec "$real"
