#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the packages for arm64 in this tree, which is of amd64, into /out; installs them beside this tree's own
# programs, and replays stills with them by qemu-user.
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

# Beside this tree's own packages, so that all scripts run natively; only the program itself is emulated.
apt install "$(ls /out/faceauth_*_arm64.deb)" "$(ls /out/faceauth-models_*_all.deb)"
# The program starts itself again, as its eye, so that the kernel must know who runs programs of arm64. It is told here
# where nobody has told it, and that is taken back.
formats=/proc/sys/fs/binfmt_misc
[ -e $formats/register ] || mount -t binfmt_misc binfmt_misc $formats
if [ ! -e $formats/qemu-aarch64 ]; then
	# Magic and mask of an ELF file of arm64; F has the emulator be there in all trees.
	printf '%s' ':qemu-aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:/usr/bin/qemu-aarch64-static:POCF' >$formats/register
	trap 'echo -1 >$formats/qemu-aarch64' EXIT
fi
run() { /usr/bin/faceauth "$@"; }
run version | grep -F 'linux/arm64' || stop 'the program is not one of arm64'
quietly run models verify
# Stills of three people, of whom two are enrolled. A face takes some seconds in qemu-user, so that the demo would take
# an hour; on amd64 the same commands give these verdicts.
cp -R "$(ls -d "$GOMODCACHE"/gocv.io/x/gocv@*/contrib/att_faces)" /tmp/stills
mkdir /tmp/replay
cd /tmp/replay
quietly run enroll /tmp/stills/s1 --name alice --frames 4
quietly run enroll /tmp/stills/s2 --name bob --frames 4
replays() {
	run replay "/tmp/stills/$1" --out "$1" >"$1.txt" 2>&1 || { cat "$1.txt"; stop "the replay of $1 failed"; }
	grep -q "^  *$2 " "$1.txt" || { cat "$1.txt"; stop "the replay of $1 ended otherwise than on amd64: $2"; }
	say "$1: $2"
}
replays s1 'alice  *4 faces'
replays s2 'bob  *5 faces'
replays s3 'unknown  *10 faces'
[ "$(grep -h -o '"label":"[a-z]*"' ./*/events.jsonl | sort -u | tr '\n' ' ')" = '"label":"" "label":"alice" "label":"bob" ' ] ||
	stop "the replays have other labels: $(grep -h -o '"label":"[a-z]*"' ./*/events.jsonl | sort | uniq -c)"
say 'the packages of arm64 replay as those of amd64 do'
