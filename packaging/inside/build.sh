#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the packages in this tree by make deb, as a user, into /out, and lets lintian look at them.
. /root/faceauth/packaging/inside/common.sh

apt update
apt install dpkg-dev gcc g++ lintian
build_dependencies
for_user
as_user make deb
cp /home/bob/faceauth/bin/deb/*.deb /out/
as_user lintian --info --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs /home/bob/faceauth/bin/deb/*.deb
cat /tmp/quiet.log
