#!/bin/sh
# wraps: bridge
# breaks: lifecycle.del-without-netns
# DEL fails without CNI_NETNS.
real="${0%/*}/.real/${0##*/}"
if [ "$CNI_COMMAND" = DEL ] && [ -z "$CNI_NETNS" ]; then echo '{"code": 4, "msg": "CNI_NETNS missing"}'; exit 1; fi
exec "$real"
