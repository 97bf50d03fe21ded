#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks whether the two commands of the README work on a fresh release: packaging/check-release.sh
# bookworm|trixie|noble
set -eu
[ $# -eq 1 ] || { echo 'say the release: packaging/check-release.sh bookworm|trixie|noble' >&2; exit 1; }
exec sh "$(dirname "$0")/tree.sh" "$1" release
