#!/bin/sh
# wraps: bridge
# breaks: delegation.del-after-the-namespace
# DEL does not call the IPAM plugin when the namespace is gone.
real="${0%/*}/.real/${0##*/}"
[ "$CNI_COMMAND" = DEL ] && ! [ -e "$CNI_NETNS" ] && exit 0
exec "$real"
