#!/bin/sh
# wraps: ptp
# breaks: protocol.bad-interface-names-code
# The interface name is not looked at.
real="${0%/*}/.real/${0##*/}"
[ -n "$CNI_IFNAME" ] && export CNI_IFNAME=eth0
exec "$real"
