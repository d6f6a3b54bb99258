#!/bin/sh
# wraps: portmap
# breaks: chaining.needs-a-predecessor
# Without a previous result nothing happens.
real="${0%/*}/.real/${0##*/}"
in=$(cat)
case "$CNI_COMMAND$in" in *prevResult*|[!A]*) printf "%s" "$in" | "$real" ;; *) echo "{}" ;; esac
