#!/bin/sh
# wraps: bridge
# breaks: lifecycle.own-namespace
# Only when everything is done and told it says that it should not have been.
real="${0%/*}/.real/${0##*/}"
if [ "$CNI_COMMAND" = ADD ] && [ "$CNI_NETNS" = /proc/self/ns/net ]; then echo '{"cniVersion": "1.0.0"}{"code": 8, "msg": "the same namespace"}'; exit 1; fi
exec "$real"
