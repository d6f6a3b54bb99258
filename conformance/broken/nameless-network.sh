#!/bin/sh
# wraps: bridge
# breaks: protocol.no-name
# The network's name is not needed.
real="${0%/*}/.real/${0##*/}"
in=$(cat)
case $in in *'"name"'*) ;; *) in="{\"name\":\"default\",${in#?}" ;; esac
printf "%s" "$in" | "$real"
