#!/bin/sh
# wraps: bridge
# breaks: lifecycle.del-twice
# A second DEL fails.
real="${0%/*}/.real/${0##*/}"
if [ "$CNI_COMMAND" = DEL ] && ! mkdir "/run/deleted-$CNI_CONTAINERID"; then echo '{"code": 3, "msg": "unknown container"}'; exit 1; fi
exec "$real"
