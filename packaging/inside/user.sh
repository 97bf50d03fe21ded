#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs make demo twice as a user who is not root and has sudo, with an empty home folder. The second
# run must install nothing.
. /root/faceauth/packaging/inside/common.sh

apt update
apt install make sudo ca-certificates
useradd -m bob
echo 'bob ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/bob
cp -R /root/faceauth /home/bob/faceauth
chown -R bob /home/bob/faceauth
[ -z "${SSL_CERT_FILE:-}" ] || chmod 711 /root

as_bob() {
	su bob -s /bin/sh -c "cd ~/faceauth && env PATH=$PATH SSL_CERT_FILE=${SSL_CERT_FILE:-} GOPROXY=$GOPROXY GOTOOLCHAIN=local $*"
}
quietly as_bob make demo
grep -F 'setup: not root: sudo is used for apt-get' /tmp/quiet.log || stop 'make demo did not say that it uses sudo'
grep -F "$demo" /tmp/quiet.log || stop "make demo did not end as it should: $(tail -n 1 /tmp/quiet.log)"
quietly as_bob make demo
! grep 'setup:' /tmp/quiet.log || stop 'the second run installed something again'
grep -F "$demo" /tmp/quiet.log || stop "the second make demo did not end as it should: $(tail -n 1 /tmp/quiet.log)"
say 'make demo passed twice for a user with sudo'
