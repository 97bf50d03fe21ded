#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs make demo as a person would on a machine with only Go and make.
. /root/faceauth/packaging/inside/common.sh

apt update
apt install make
cd /root/faceauth
quietly make demo
grep -F "$demo" /tmp/quiet.log || stop "make demo did not end as it should: $(tail -n 1 /tmp/quiet.log)"
say 'make demo passed'
