#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the packages in this tree, into /out.
. /root/faceauth/packaging/inside/common.sh

apt update
apt install dpkg-dev gcc g++
build_dependencies
git clone -q /root/faceauth.git /root/build
cd /root/build
# OpenCV would be compiled against twice if faceauth models install did this.
export MODELS=/root/models
FACEAUTH_MODELS=$MODELS quietly go run ./cmd/faceauth-models
packaging/build.sh /out
