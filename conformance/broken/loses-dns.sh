#!/bin/sh
# wraps: firewall
# breaks: results.passes-dns-on
# The DNS of the previous result is lost.
real="${0%/*}/.real/${0##*/}"
[ "$CNI_COMMAND" = ADD ] || exec "$real"
sed 's/"dns":/"xxx":/' | "$real"
