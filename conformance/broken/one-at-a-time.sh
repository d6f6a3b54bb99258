#!/bin/sh
# wraps: bridge
# breaks: concurrency.adds
# Only one at a time, others fail.
real="${0%/*}/.real/${0##*/}"
[ "$CNI_COMMAND" = ADD ] || exec "$real"
if ! mkdir /run/busy 2>/dev/null; then echo '{"code": 11, "msg": "busy"}'; exit 1; fi
sleep 0.2
"$real"; status=$?
rmdir /run/busy
exit $status
