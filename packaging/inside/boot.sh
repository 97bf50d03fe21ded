#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs what asks for a face on Debian 13, builds the programs and the module, and leaves the tree as a folder that
# internal/boottest can boot: BASE=OUT/root.
. /root/faceauth/packaging/inside/common.sh

apt update
# What logs in and asks PAM, what the tests use, and what a build needs. Users of services are known by libnss-systemd.
apt install systemd-sysv dbus dbus-user-session libpam-systemd polkitd pkexec sudo sudo-rs login openssh-server openssh-client \
	gdm3 gnome-shell xvfb xdotool i3lock xsecurelock sway swaylock wtype lightdm lightdm-gtk-greeter sddm at \
	adduser pamtester python3 procps iproute2 curl libnss-systemd \
	git make gcc g++ pkg-config libopencv-dev libavformat-dev libswscale-dev libpam0g-dev libcrypt-dev ca-certificates
for_user
as_user make programs man pam-module
rm /usr/sbin/policy-rc.d
mkdir /out/root
cp -ax / /out/root
say 'a system to boot is in the folder root'
