#!/bin/sh
# wraps: firewall
# breaks: protocol.supported-version
# 0.1.0 is in the list, but not supported.
real="${0%/*}/.real/${0##*/}"
if [ "$CNI_COMMAND" = VERSION ]; then "$real" | sed 's/\["/["0.1.0","/;s/"0.1.0","0.1.0"/"0.1.0"/'; exit; fi
in=$(cat)
case $in in *'"0.1.0"'*) echo '{"code": 1, "msg": "incompatible CNI versions"}'; exit 1 ;; esac
printf "%s" "$in" | "$real"
