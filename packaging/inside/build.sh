#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the packages in this tree, into /out.
. /root/faceauth/packaging/inside/common.sh

apt update
mkdir /tmp/deps
cp -R /root/faceauth/packaging/debian /tmp/deps/debian
printf 'faceauth (0) unstable; urgency=medium\n\n  * For the list of packages.\n\n -- nobody <nobody@faceauth.invalid>  Thu, 01 Jan 1970 00:00:00 +0000\n' >/tmp/deps/debian/changelog
apt install dpkg-dev gcc g++
apt build-dep /tmp/deps
git clone -q /root/faceauth.git /root/build
cd /root/build
# OpenCV would be compiled against twice if faceauth models install did this.
export MODELS=/root/models
if [ -f /root/models.tgz ]; then
	CGO_ENABLED=0 quietly go run ./internal/fetch models "$MODELS" /root/models.tgz
else
	CGO_ENABLED=0 go run ./internal/fetch models "$MODELS"
fi
packaging/build.sh /out
