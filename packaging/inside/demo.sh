#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs make demo as a person would on a machine with only Go and make, and compares what setup announces with what it
# takes.
. /root/faceauth/packaging/inside/common.sh

apt update
apt install make
cd /root/faceauth
before=$(du -sxm / | cut -f1)
quietly make demo
grep '^setup: ' /tmp/quiet.log
grep -F "$demo" /tmp/quiet.log || stop "make demo did not end as it should: $(tail -n 1 /tmp/quiet.log)"
say "make demo passed, printed $(wc -l </tmp/quiet.log) lines, and took $(($(du -sxm / | cut -f1) - before)) MB of disk: $(du -sm "$(go env GOMODCACHE)" | cut -f1) of modules, $(du -sm "$(go env GOCACHE)" | cut -f1) of compiled code"
