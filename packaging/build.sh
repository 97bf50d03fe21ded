#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the Debian packages of one commit for the release and the architecture of this system:
#
#   packaging/build.sh OUT            into the folder OUT; make deb says bin/deb
#
# ARCH=arm64 builds for another architecture, and leaves out the models, which are the same for all. It builds COMMIT,
# or HEAD. MODELS names the folder of the models; without it they are those of faceauth models install. It installs
# nothing, and reports missing packages. For another release see packaging/tree.sh.
set -eu

stop() {
	printf 'build: %s\n' "$*" >&2
	exit 1
}

[ $# -eq 1 ] || stop 'say where the packages go: packaging/build.sh OUT'
mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
source=$(pwd)
for command in dpkg-buildpackage dh git go; do
	command -v "$command" >/dev/null 2>&1 ||
		stop "there is no $command; as root run: apt-get install build-essential debhelper git libopencv-dev libavformat-dev libswscale-dev libcrypt-dev libpam0g-dev, and for go see https://go.dev/dl/"
done
arch=${ARCH:-$(dpkg --print-architecture)}
commit=$(git -c safe.directory='*' rev-parse --verify "${COMMIT:-HEAD}^{commit}") || stop 'there is no such commit'
kind=binary
[ "$arch" = "$(dpkg --print-architecture)" ] || kind=any
models=${MODELS:-${FACEAUTH_MODELS:-${XDG_DATA_HOME:-$HOME/.local/share}/faceauth/models}}
for m in fr_detect fr_landmark fr_feature fr_liveness; do
	[ "$kind" = any ] || [ -f "$models/$m.onnx" ] || stop "there is no $m.onnx in $models; run: make models"
done
# It is in no registry of packages, so who builds for themselves may be without it.
[ "$kind" = any ] || [ -f "$models/face_detection_yunet_2026may.onnx" ] ||
	echo "build: faceauth-models will be without YuNet, which a release has; to have it: bin/faceauth models install yunet" >&2

work=$(mktemp -d "${TMPDIR:-/var/tmp}/faceauth-build-XXXXXX")
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# A clone: changes that are not committed stay out, and go version -m names the commit.
git -c safe.directory='*' clone -q --no-hardlinks "$source" "$work/faceauth"
cd "$work/faceauth"
git checkout -q --detach "$commit"
cp -R packaging/debian debian
printf '/debian/\n' >>.git/info/exclude

SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
# The release is part of the version, so that an upgrade of the system brings the packages of the new release:
# 0.1.0+deb12.
version=$(sed -n 's/^const Version = "\(.*\)"$/\1/p' internal/version/version.go)
[ -n "$version" ] || stop 'internal/version has no Version'
# shellcheck disable=SC1091
release=$(. /etc/os-release && case $ID in debian) echo "deb$VERSION_ID" ;; *) echo "$ID$VERSION_ID" ;; esac)
cat >debian/changelog <<END
faceauth ($version+$release) unstable; urgency=medium

  * Built from commit $(git rev-parse --short=12 HEAD). CHANGELOG.md says what is new.

 -- The faceauth authors <faceauth@faceauth.invalid>  $(date -u -R -d "@$SOURCE_DATE_EPOCH")
END

# An empty cache would be filled each time; gocv alone takes a minute.
GOCACHE=$(go env GOCACHE) GOMODCACHE=$(go env GOMODCACHE)
export GOCACHE GOMODCACHE MODELS="$models"
log=$out/build-$release-$arch.log
# All that is fetched is fetched here: debian/rules forbids it.
{ go mod download && go -C lab mod download; } >"$log" 2>&1 || {
	tail -n 15 "$log" >&2
	stop 'the modules of Go cannot be fetched; is there a network?'
}
dpkg-buildpackage --build="$kind" --host-arch "$arch" --no-sign --no-pre-clean >"$log" 2>&1 || {
	tail -n 15 "$log" >&2
	stop "the build failed; all it said is in $log"
}
cp ../*.deb "$out/"
cd "$out"
sha256sum ./*"+${release}_"*.deb
