#!/bin/sh
# wraps: bridge
# breaks: delegation.whole-request
# The IPAM plugin does not get all keys.
real="${0%/*}/.real/${0##*/}"
sed 's/"x-unknown":{[^}]*},//' | "$real"
