#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs make demo twice as a user who is not root and has sudo, with an empty home folder. The second
# run must install nothing.
. /root/faceauth/packaging/inside/common.sh

apt update
apt install git make sudo ca-certificates
for_user
echo 'bob ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/bob

as_user make demo
grep -F 'setup: not root: sudo is used for apt-get' /tmp/quiet.log || stop 'make demo did not say that it uses sudo'
grep -F "$demo" /tmp/quiet.log || stop "make demo did not end as it should: $(tail -n 1 /tmp/quiet.log)"
as_user make demo
! grep 'setup:' /tmp/quiet.log || stop 'the second run installed something again'
grep -F "$demo" /tmp/quiet.log || stop "the second make demo did not end as it should: $(tail -n 1 /tmp/quiet.log)"
say 'make demo passed twice for a user with sudo'
