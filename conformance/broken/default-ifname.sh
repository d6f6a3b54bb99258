#!/bin/sh
# wraps: bridge
# breaks: protocol.add-without-ifname
# Without an interface name there is a default.
real="${0%/*}/.real/${0##*/}"
[ -z "$CNI_COMMAND" ] || export CNI_IFNAME="${CNI_IFNAME:-eth0}"
exec "$real"
