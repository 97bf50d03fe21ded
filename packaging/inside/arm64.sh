#!/bin/sh
# Builds the packages for arm64 in this tree, which is of amd64, into /out; installs them beside this tree's own
# programs, and replays the demo with them by qemu-user.
. /root/faceauth/packaging/inside/common.sh

dpkg --add-architecture arm64
apt update
mkdir /tmp/deps
cp -R /root/faceauth/packaging/debian /tmp/deps/debian
printf 'faceauth (0) unstable; urgency=medium\n\n  * For the list of packages.\n\n -- nobody <nobody@faceauth.invalid>  Thu, 01 Jan 1970 00:00:00 +0000\n' >/tmp/deps/debian/changelog
apt install dpkg-dev crossbuild-essential-arm64 qemu-user-static
apt build-dep --host-architecture arm64 /tmp/deps
git clone -q /root/faceauth.git /root/build
cd /root/build
ARCH=arm64 packaging/build.sh /out
