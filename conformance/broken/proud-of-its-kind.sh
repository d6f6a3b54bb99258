#!/bin/sh
# wraps: firewall
# breaks: chaining.foreign-interfaces
# Interfaces of others are refused.
real="${0%/*}/.real/${0##*/}"
in=$(cat)
case $in in *foreign0*) echo '{"code": 7, "msg": "unknown interface"}'; exit 1 ;; esac
printf "%s" "$in" | "$real"
