#!/bin/sh
# wraps: bridge
# breaks: traffic.masquerade
# ipMasq is ignored.
real="${0%/*}/.real/${0##*/}"
sed 's/"ipMasq":true/"ipMasq":false/' | "$real"
