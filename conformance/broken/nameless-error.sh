#!/bin/sh
# wraps: macvlan
# breaks: protocol.del-without-container-id
# The error does not name the variable that is missing.
real="${0%/*}/.real/${0##*/}"
out=$("$real"); status=$?
printf "%s" "$out" | sed "s/CNI_[A-Z]*/something/g"
exit $status
