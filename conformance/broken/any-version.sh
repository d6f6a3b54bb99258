#!/bin/sh
# wraps: bridge
# breaks: protocol.unsupported-version
# Any version is taken for 1.0.0.
real="${0%/*}/.real/${0##*/}"
sed 's/"9.9.9"/"1.0.0"/;s/"0.5.0"/"1.0.0"/' | "$real"
