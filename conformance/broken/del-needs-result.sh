#!/bin/sh
# wraps: firewall
# breaks: lifecycle.del-without-result
# DEL fails without prevResult.
real="${0%/*}/.real/${0##*/}"
in=$(cat)
if [ "$CNI_COMMAND" = DEL ]; then case $in in *prevResult*) ;; *) echo '{"code": 7, "msg": "missing prevResult"}'; exit 1 ;; esac; fi
printf "%s" "$in" | "$real"
