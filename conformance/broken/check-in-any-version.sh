#!/bin/sh
# wraps: bridge
# breaks: protocol.check-needs-0.4.0
# CHECK is allowed in every version.
real="${0%/*}/.real/${0##*/}"
[ "$CNI_COMMAND" = CHECK ] || exec "$real"
sed 's/"cniVersion":"[0-9.]*"/"cniVersion":"1.0.0"/' | "$real"
