#!/bin/sh
# wraps: static
# breaks: results.addresses
# Addresses have no prefix.
real="${0%/*}/.real/${0##*/}"
[ "$CNI_COMMAND" = ADD ] || exec "$real"
out=$("$real"); status=$?
printf "%s" "$out" | sed 's,\("address": *"[0-9.]*\)/[0-9]*,\1,'
exit $status
