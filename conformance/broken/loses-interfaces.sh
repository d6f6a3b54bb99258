#!/bin/sh
# wraps: firewall
# breaks: results.passes-interfaces-on
# The interfaces of the previous result are lost.
real="${0%/*}/.real/${0##*/}"
[ "$CNI_COMMAND" = ADD ] || exec "$real"
out=$("$real"); status=$?
printf "%s" "$out" | sed 's/"interfaces":/"xxx":/'
exit $status
