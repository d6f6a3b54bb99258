#!/bin/sh
# wraps: bridge
# breaks: delegation.arguments
# The IPAM plugin does not get all variables.
real="${0%/*}/.real/${0##*/}"
unset COLOUR_OF_OTHERS
exec "$real"
