#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the packages for arm64 in this tree, which is of amd64, into /out; installs them beside this tree's own
# programs, and replays stills with them in an emulated machine.
#
# The machine is emulated whole, with a kernel of its own. qemu-user has neither seccomp nor Landlock, so the eye, which
# decodes in a sandbox, refuses to work there.
. /root/faceauth/packaging/inside/common.sh

models=$(ls /out/faceauth-models_*_all.deb 2>/dev/null) ||
	stop 'the package of the models is missing; build it first: packaging/tree.sh bookworm build OUT, with the same OUT'
dpkg --add-architecture arm64
apt update
apt install dpkg-dev crossbuild-essential-arm64 qemu-user-static
build_dependencies --host-architecture arm64
git clone -q /root/faceauth.git /root/build
cd /root/build
ARCH=arm64 packaging/build.sh /out

# Beside this tree's own packages, so that all scripts run natively; only the program itself is emulated.
apt install "$models" /out/faceauth_*_arm64.deb

# The machine has the kernel of this release for arm64, and no disk: all its files are in memory.
apt install qemu-system-arm cpio
machine=/tmp/machine
mkdir -p $machine/download $machine/files
cd $machine/download
kernel=$(apt-cache depends linux-image-arm64:arm64 | sed -n 's/^ *Depends: //p')
quietly apt-get -q -o APT::Sandbox::User=root download "$kernel" busybox-static:arm64
for deb in ./*.deb; do dpkg-deb -x "$deb" $machine/unpacked; done
cd $machine/files
mkdir bin dev proc root sys tmp
ln -s usr/lib lib
cp "$(ls $machine/unpacked/bin/busybox $machine/unpacked/usr/bin/busybox 2>/dev/null)" bin/busybox
install -m 755 /root/faceauth/packaging/inside/arm64-init.sh init
cp /root/faceauth/packaging/inside/stills.sh .
cp -R /usr/share/faceauth/demo stills
# Files of the packages of arm64, the links that update-alternatives and ldconfig made for them, and the models. Some
# packages name /lib, which is a link here.
{
	dpkg-query -W -f '${Package}:${Architecture}\n' | grep ':arm64$' | xargs dpkg -L
	dpkg -L faceauth-models
	find /usr/lib/aarch64-linux-gnu /etc/alternatives -type l
	printf '%s\n' /etc/passwd /etc/group
} | sed 's,^/lib/,/usr/lib/,' | grep -v '\.a$' | sort -u | while read -r file; do
	if [ ! -d "$file" ] && [ -e "$file" ]; then echo "${file#/}"; fi
done >$machine/list
tar -C / -c -T $machine/list | tar -x
find . | cpio -o -H newc --quiet >$machine/initrd

# Its clock counts instructions, a thousand million to the second, as on a tablet. It stands still while this machine is
# busy with other work, so that no deadline of the program passes because of that.
timeout 2400 qemu-system-aarch64 -M virt -cpu cortex-a72 -m 3072 -icount shift=0,sleep=off -nodefaults -display none \
	-nic none -no-reboot -serial file:$machine/console -kernel $machine/unpacked/boot/vmlinuz-* -initrd $machine/initrd \
	-append 'console=ttyAMA0 panic=-1 quiet' || say "the machine ended with exit code $?"
tr -d '\r' <$machine/console | sed "s/^/$RELEASE: machine: /"
tr -d '\r' <$machine/console | grep -q 'linux/arm64' || stop 'the program is not one of arm64'
tr -d '\r' <$machine/console | grep -qx 'arm64-init: exit code 0' || stop 'the program of arm64 failed'
say 'the packages of arm64 replay as those of amd64 do'
