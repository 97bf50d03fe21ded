#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the packages of HEAD twice, with nothing in common but the commit and the installed system, and compares
# them: another folder, an empty build cache, another home, time zone, language, umask and number of processors.
# To run it in a tree: packaging/tree.sh bookworm reproducible OUT
set -eu

here=$(cd "$(dirname "$0")" && pwd)
models=${MODELS:-${FACEAUTH_MODELS:-${XDG_DATA_HOME:-$HOME/.local/share}/faceauth/models}}
COMMIT=$(git -c safe.directory='*' -C "$here" rev-parse HEAD) # both builds use this commit, whatever comes later
export COMMIT
work=$(mktemp -d "${TMPDIR:-/var/tmp}/faceauth-twice-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
mkdir "$work/a" "$work/b" "$work/b/a-folder-with-a-longer-name" "$work/home" "$work/cache"
modcache=$(go env GOMODCACHE)

(umask 022 && MODELS="$models" sh "$here/build.sh" "$work/a") >"$work/a.sums"
(umask 077 && cd / && env -i PATH="$PATH" HOME="$work/home" GOCACHE="$work/cache" GOMODCACHE="$modcache" \
	TMPDIR="$work/b/a-folder-with-a-longer-name" TZ=Pacific/Auckland LC_ALL=C LANG=de_DE.UTF-8 USER=somebody \
	GOMAXPROCS=1 COMMIT="$COMMIT" MODELS="$models" sh "$here/build.sh" "$work/b") >"$work/b.sums"
cat "$work/a.sums"
if ! diff "$work/a.sums" "$work/b.sums" >&2; then
	cp -R "$work/a" "$work/b" "${1:-/tmp}/" 2>/dev/null || true
	echo "reproducible: the same commit gave other packages; both are in ${1:-/tmp}; see them with diffoscope" >&2
	exit 1
fi
echo 'reproducible: both builds gave the same bytes'
