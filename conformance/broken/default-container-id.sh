#!/bin/sh
# wraps: static
# breaks: protocol.add-without-container-id
# Without a container id there is a default.
real="${0%/*}/.real/${0##*/}"
export CNI_CONTAINERID="${CNI_CONTAINERID:-default}"
exec "$real"
