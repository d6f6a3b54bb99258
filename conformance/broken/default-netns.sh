#!/bin/sh
# wraps: bridge
# breaks: protocol.add-without-netns
# Without a namespace there is a default.
real="${0%/*}/.real/${0##*/}"
[ "$CNI_COMMAND" = ADD ] && export CNI_NETNS="${CNI_NETNS:-/run/netns/default}"
exec "$real"
