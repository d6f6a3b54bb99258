#!/bin/sh
# wraps: static
# breaks: hostile.paths
# Container ids that climb out of directories are taken.
real="${0%/*}/.real/${0##*/}"
case "$CNI_CONTAINERID" in *..*|/*|.) export CNI_CONTAINERID=any ;; esac
exec "$real"
