#!/bin/sh
# wraps: firewall
# breaks: hostile.odd-values
# It dies with exit code 2 and a text on standard error.
real="${0%/*}/.real/${0##*/}"
"$real" >"/run/out-$$" && { cat "/run/out-$$"; exit 0; }
echo "panic: runtime error" >&2; exit 2
