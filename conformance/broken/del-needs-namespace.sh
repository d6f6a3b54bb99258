#!/bin/sh
# wraps: ptp
# breaks: lifecycle.del-after-the-namespace
# DEL fails when the namespace is gone.
real="${0%/*}/.real/${0##*/}"
if [ "$CNI_COMMAND" = DEL ] && ! [ -e "$CNI_NETNS" ]; then echo '{"code": 999, "msg": "no namespace"}'; exit 1; fi
exec "$real"
