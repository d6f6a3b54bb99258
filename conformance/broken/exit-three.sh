#!/bin/sh
# wraps: host-local
# breaks: protocol.error-exit-code-1
# Errors end with exit code 3.
real="${0%/*}/.real/${0##*/}"
"$real" || exit 3
