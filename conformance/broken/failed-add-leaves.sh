#!/bin/sh
# wraps: bridge
# breaks: lifecycle.failed-add-leaves-nothing
# An ADD that fails leaves something.
real="${0%/*}/.real/${0##*/}"
"$real" && exit 0
[ "$CNI_COMMAND" = ADD ] && : >"/run/left-$CNI_CONTAINERID"
exit 1
