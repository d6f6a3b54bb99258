#!/bin/sh
# wraps: static
# breaks: protocol.error-details
# The details of an error are an object.
real="${0%/*}/.real/${0##*/}"
out=$("$real"); status=$?
[ $status = 0 ] || out="${out%\}*}, \"details\": {}}"
printf "%s" "$out"
exit $status
