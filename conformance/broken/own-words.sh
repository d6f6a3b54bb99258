#!/bin/sh
# wraps: bridge
# breaks: delegation.error-passes
# The IPAM plugin's error is put into other words.
real="${0%/*}/.real/${0##*/}"
out=$("$real"); status=$?
if [ "$CNI_COMMAND" = ADD ] && [ $status -ne 0 ]; then echo '{"code": 999, "msg": "IPAM failed"}'; exit 1; fi
printf "%s" "$out"; exit $status
