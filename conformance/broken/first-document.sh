#!/bin/sh
# wraps: bridge
# breaks: protocol.two-requests
# Only the first document is read.
real="${0%/*}/.real/${0##*/}"
head -c 12 | "$real"
