#!/bin/sh
# wraps: static
# breaks: protocol.error-details
# The details of an error are an object.
real="${0%/*}/.real/${0##*/}"
out=$("$real"); status=$?
printf "%s" "$out" | sed 's/"msg":/"details": {}, "msg":/'
exit $status
