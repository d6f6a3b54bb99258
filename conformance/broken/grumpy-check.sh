#!/bin/sh
# wraps: static
# breaks: lifecycle.check
# CHECK always fails.
real="${0%/*}/.real/${0##*/}"
[ "$CNI_COMMAND" = CHECK ] || exec "$real"
echo '{"code": 999, "msg": "something"}'; exit 1
