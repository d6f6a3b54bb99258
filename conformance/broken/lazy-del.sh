#!/bin/sh
# wraps: macvlan
# breaks: lifecycle.del-takes-the-interface
# DEL does nothing.
real="${0%/*}/.real/${0##*/}"
[ "$CNI_COMMAND" = DEL ] || exec "$real"
