#!/bin/sh
# wraps: bridge
# breaks: delegation.garbage
# An IPAM plugin that prints garbage is good enough.
real="${0%/*}/.real/${0##*/}"
out=$("$real"); status=$?
if [ "$CNI_COMMAND" = ADD ] && [ $status -ne 0 ]; then echo "{}"; exit 0; fi
printf "%s" "$out"; exit $status
