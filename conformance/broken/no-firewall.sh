#!/bin/sh
# wraps: firewall
# breaks: traffic.through-the-firewall
# Nothing is let through.
real="${0%/*}/.real/${0##*/}"
in=$(cat)
printf "%s" "$in" | "$real"; status=$?
[ "$CNI_COMMAND" = ADD ] && printf "%s" "$in" | CNI_COMMAND=DEL "$real" >/dev/null
exit $status
