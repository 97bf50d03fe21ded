#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks whether make explains on a fresh system why it cannot continue: the user may not install packages, there is no
# network, the proxy does not exist, or another program is installing packages. The messages of apt-get are those of
# this release.
. /root/faceauth/packaging/inside/common.sh

apt update
apt install make
useradd -m bob
cp -R /root/faceauth /srv/faceauth
chown -R bob /srv/faceauth
cd /srv/faceauth
# A fresh system has fetched nothing, so apt-get has to.
umount /var/cache/apt/archives
rm -rf /var/lib/apt/lists/*

# make must fail within four minutes, and its output must contain the sentence.
says() {
	sentence=$1
	shift
	if timeout 240 "$@" >/tmp/says.log 2>&1; then
		stop "it went well: $*"
	fi
	grep -F "$sentence" /tmp/says.log || {
		cat /tmp/says.log
		stop "it does not say: $sentence"
	}
}

# Bob has the Go of the tree, but not its folders: make must report what is missing before it asks Go for modules.
says 'only root can install them; as root run: apt-get update && apt-get install --no-install-recommends gcc g++' \
	su bob -s /bin/sh -c "PATH=$PATH make demo"
says 'its servers cannot be reached; is there a network? Behind a proxy run: http_proxy=' unshare --net make demo
says 'its servers cannot be reached through the proxy of http_proxy; is that address right?' \
	env http_proxy=http://127.0.0.1:9 make demo
says 'its servers cannot be reached through the proxy of http_proxy; is that address right?' \
	env HTTPS_PROXY=http://proxy.invalid:3128 make demo
# Perl, which every Debian has, takes the lock as apt-get and dpkg do.
perl -e 'use Fcntl; open my $f, ">", "/var/lib/dpkg/lock-frontend" or die; my $lock = pack("s x62", F_WRLCK);
	fcntl($f, F_SETLK, $lock) or die; sleep 600' &
held=$!
says 'another program installs packages; wait until it has ended' make demo
kill "$held"
say 'make says what keeps it from its work'
