#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs make demo twice as a user who is not root and has sudo, with a home folder that Go's caches are not in. The second
# run must install nothing.
. /root/faceauth/packaging/inside/common.sh

apt update
apt install make sudo ca-certificates
useradd -m bob
echo 'bob ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/bob
cp -R /root/faceauth /home/bob/faceauth
chown -R bob /home/bob/faceauth /root/cache
chmod 711 /root

# Bob fetches the modules into a folder of his own, from those that the tree has.
as_bob() {
	su bob -s /bin/sh -c "cd ~/faceauth && env PATH=$PATH SSL_CERT_FILE=${SSL_CERT_FILE:-} GOCACHE=$GOCACHE \
		GOPROXY=file://$GOMODCACHE/cache/download GOTOOLCHAIN=local $*"
}
quietly as_bob make demo
grep -F 'setup: not root: sudo is used for apt-get' /tmp/quiet.log || stop 'make demo did not say that it uses sudo'
grep -F "$demo" /tmp/quiet.log || stop "make demo did not end as it should: $(tail -n 1 /tmp/quiet.log)"
quietly as_bob make demo
! grep 'setup:' /tmp/quiet.log || stop 'the second run installed something again'
grep -F "$demo" /tmp/quiet.log || stop "the second make demo did not end as it should: $(tail -n 1 /tmp/quiet.log)"
say 'make demo passed twice for a user with sudo'
