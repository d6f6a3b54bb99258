#!/bin/sh
# wraps: bridge
# breaks: hostile.odd-results
# It dies of a null in a list.
real="${0%/*}/.real/${0##*/}"
in=$(cat)
case $in in *'"ips":[null]'*) kill -ABRT $$ ;; esac
printf "%s" "$in" | "$real"
