#!/bin/sh
# wraps: static
# breaks: lifecycle.del-leaves-nothing
# ADD writes a file that DEL does not delete.
real="${0%/*}/.real/${0##*/}"
[ "$CNI_COMMAND" = ADD ] && : >"/run/left-$CNI_CONTAINERID"
exec "$real"
