#!/bin/sh
# wraps: static
# breaks: protocol.unknown-keys
# Unknown keys are an error.
real="${0%/*}/.real/${0##*/}"
in=$(cat)
case $in in *x-unknown*) echo '{"code": 7, "msg": "unknown key"}'; exit 1 ;; esac
printf "%s" "$in" | "$real"
