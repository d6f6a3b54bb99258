#!/bin/sh
# wraps: loopback
# breaks: traffic.loopback
# ADD sets nothing up.
real="${0%/*}/.real/${0##*/}"
[ "$CNI_COMMAND" = ADD ] || exec "$real"
echo '{"cniVersion": "1.0.0", "interfaces": [], "ips": []}'
