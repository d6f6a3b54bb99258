#!/bin/sh
# wraps: loopback
# breaks: protocol.error-exit-code
# Errors end with exit code 0.
real="${0%/*}/.real/${0##*/}"
"$real"
exit 0
