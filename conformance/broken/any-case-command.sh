#!/bin/sh
# wraps: loopback
# breaks: protocol.commands-are-upper-case
# Commands are taken in lower case.
real="${0%/*}/.real/${0##*/}"
CNI_COMMAND=$(printf "%s" "$CNI_COMMAND" | tr a-z A-Z)
export CNI_COMMAND
exec "$real"
