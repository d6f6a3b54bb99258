#!/bin/sh
# wraps: loopback
# breaks: protocol.version-is-steady
# VERSION lists what it was asked for.
real="${0%/*}/.real/${0##*/}"
[ "$CNI_COMMAND" = VERSION ] || exec "$real"
asked=$(sed 's/.*"cniVersion":"\([^"]*\)".*/\1/')
printf '{"cniVersion":"%s","supportedVersions":["%s"]}\n' "$asked" "$asked"
