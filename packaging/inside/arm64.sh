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

# Beside this tree's own packages, so that all scripts run natively; only the program itself is emulated.
apt install "$(ls /out/faceauth_*_arm64.deb)" "$(ls /out/faceauth-models_*_all.deb)"
run() { qemu-aarch64-static -L / /usr/bin/faceauth "$@"; }
run version | grep -F 'linux/arm64' || stop 'the program is not one of arm64'
quietly run models verify
cd /tmp
start=$(date +%s)
FACEAUTH_DEMO_FACES=$(ls -d "$GOMODCACHE"/gocv.io/x/gocv@*/contrib/att_faces)
export FACEAUTH_DEMO_FACES
run demo >/tmp/demo.log 2>&1 || { tail -n 5 /tmp/demo.log; stop 'the demo failed'; }
cat /tmp/demo.log
say "the demo took $(($(date +%s) - start)) s by qemu-user"
grep -qF "$demo" /tmp/demo.log || stop 'the demo ended otherwise than on amd64'
say 'the packages of arm64 replay the demo as those of amd64 do'
