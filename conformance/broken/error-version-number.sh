#!/bin/sh
# wraps: static
# breaks: protocol.error-version
# The cniVersion of an error is a number.
real="${0%/*}/.real/${0##*/}"
out=$("$real"); status=$?
printf "%s" "$out" | sed 's/"msg":/"cniVersion": 1, "msg":/'
exit $status
