#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the packages in this tree, into /out, and then twice more, to compare them.
. /root/faceauth/packaging/inside/build.sh

packaging/check-reproducible.sh /out
