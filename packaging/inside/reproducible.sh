#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the packages in this tree, into /out, and then twice more, to compare them.
. /root/faceauth/packaging/inside/build.sh

install -d -o bob /out/twice
as_user packaging/check-reproducible.sh /out/twice
rmdir /out/twice
tail -n 1 /tmp/quiet.log
