#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the packages of /out in this tree, upgrades, removes and purges them, and checks the files after each step.
. /root/faceauth/packaging/inside/common.sh

arch=$(dpkg --print-architecture)
debs=$(ls /out/*faceauth_*_"$arch".deb /out/faceauth-lab_*_"$arch".deb /out/faceauth-fleet-server_*_"$arch".deb /out/faceauth-models_*_all.deb /out/faceauth-office_*_all.deb)
debs=$(printf '%s\n' "$debs" | grep -F "+${release}_") ||
	stop "there are no packages of $release for $arch in $(ls /out)"

must() { "$@" || stop "not so: $*"; }
mustnt() { ! "$@" || stop "so it is: $*"; }
# Alice logs in with her password. This must work in every state of faceauth.
password() {
	printf 'secret\n' | pamtester -v tried alice authenticate 2>/tmp/pam.log >/tmp/pam.out && return
	cat /tmp/pam.log
	stop "no login with the password $1"
}

apt update
apt install pamtester groff-base man-db libpam-runtime passwd
useradd -m alice
echo alice:secret | chpasswd
printf 'auth include common-auth\naccount required pam_permit.so\n' >/etc/pam.d/tried
password 'before anything is installed'

# The program alone brings no user and no service.
users=$(cat /etc/passwd)
# shellcheck disable=SC2046
apt install $(printf '%s\n' "$debs" | grep '/faceauth_\|-models_')
[ "$(cat /etc/passwd)" = "$users" ] || stop 'the package faceauth adds a user'
mustnt ls /lib/systemd/system/faceauth* /usr/lib/systemd/system/faceauth* 2>/dev/null
must grep -q 'Permission is hereby granted' /usr/share/faceauth/licences/faceauth.txt
su - alice -s /bin/sh -c 'faceauth demo' >/tmp/demo.log 2>&1 || { tail -n 5 /tmp/demo.log; stop 'the demo failed'; }
grep -F "$demo" /tmp/demo.log || stop "the demo ended otherwise: $(tail -n 1 /tmp/demo.log)"

# shellcheck disable=SC2086
apt install $debs
say 'installed'
must faceauth version
must faceauth-fleet-server --version
quietly faceauth models
must getent passwd faceauth
id -nG faceauth | grep -qw video && stop 'the user faceauth may use cameras, which is for its eyes'
id -nG faceauth-eye | grep -qw video || stop 'the user faceauth-eye may not use cameras'
owner=$(stat -c %U:%a /var/lib/faceauth)
[ "$owner" = faceauth:700 ] || stop "/var/lib/faceauth is $owner"
gzip -dc /usr/share/man/man1/faceauth.1.gz | groff -man -Tutf8 -ww -z || stop 'the manual page is not in order'
bash -n /usr/share/bash-completion/completions/faceauth || stop 'the completion of bash is not in order'
quietly systemd-analyze verify --man=no faceauth.service faceauth-key.service faceauth-fleet-server.service
! command -v ldd >/dev/null || mustnt sh -c 'ldd /usr/bin/faceauth-eye /lib/*/security/pam_faceauth.so | grep "not found"'
as_alice() { su - alice -s /bin/sh -c "$*"; } # does not pass on root's environment
as_alice faceauth doctor >/tmp/doctor.log || { cat /tmp/doctor.log; stop 'doctor finds something missing'; }
mustnt grep -i haar /tmp/doctor.log
# The service is off until an administrator turns it on.
mustnt grep -r pam_faceauth /etc/pam.d
password 'while it is off'
pam-auth-update --enable faceauth faceauth-password
must grep -q pam_faceauth.so /etc/pam.d/common-auth
password 'while it is on'

# The installed program and models replay as on every other machine.
cd /home/alice
as_alice faceauth enroll faceauth-demo/alice.avi --name alice >/tmp/enroll.log 2>&1 || {
	cat /tmp/enroll.log
	stop 'enrolling failed'
}
people=$(as_alice faceauth people --json)
must [ -n "$people" ]
# The replay that arm64.sh makes on an emulated arm64.
must sh /root/faceauth/packaging/inside/stills.sh /usr/share/faceauth/demo

# A file in the place of a store of logins, as its owner would have written it.
printf 'sealed' >/var/lib/faceauth/profiles
chown faceauth:faceauth /var/lib/faceauth/profiles
chmod 600 /var/lib/faceauth/profiles
echo 'session mine' >>/etc/faceauth/services
# What an office and the server of a fleet leave.
theirs='/var/lib/faceauth-office /etc/faceauth/office-home.yaml /var/lib/faceauth-fleet'
mkdir /var/lib/faceauth-office /var/lib/faceauth-fleet
touch /var/lib/faceauth-office/home.db /etc/faceauth/office-home.yaml /var/lib/faceauth-fleet/server.json
kept() {
	[ "$(cat /var/lib/faceauth/profiles)" = sealed ] || stop "the store is gone after $1"
	owner=$(stat -c %U:%a /var/lib/faceauth/profiles)
	[ "$owner" = faceauth:600 ] || stop "the store belongs to $owner after $1"
}

# The same packages with a higher version take the place of a later version.
mkdir /tmp/next
for deb in $debs; do
	dpkg-deb -R "$deb" /tmp/next/tree
	sed -i 's/^Version: .*/&.1/; s/\(faceauth (= [^)]*\))/\1.1)/' /tmp/next/tree/DEBIAN/control
	dpkg-deb -Znone -b /tmp/next/tree "/tmp/next/$(basename "$deb")" >/dev/null
	rm -rf /tmp/next/tree
done
# shellcheck disable=SC2046
apt install $(ls /tmp/next/*.deb)
case $(dpkg-query -W -f '${Version}' faceauth) in *.1) ;; *) stop 'it was not upgraded' ;; esac
kept 'an upgrade'
must [ "$(as_alice faceauth people --json)" = "$people" ]
must grep -q '^session mine$' /etc/faceauth/services
must grep -q pam_faceauth.so /etc/pam.d/common-auth
password 'after an upgrade'
say 'upgraded, with the store, the gallery, the settings and the PAM profile kept'

apt remove faceauth faceauth-office libpam-faceauth faceauth-lab faceauth-fleet-server faceauth-models
mustnt grep -r pam_faceauth /etc/pam.d
mustnt [ -e /usr/bin/faceauth ]
kept 'a removal'
password 'after a removal'
say 'removed, with the store kept'

# apt-get does not know a removed package of a file any more that left no settings, and refuses all.
# shellcheck disable=SC2046
apt purge $(dpkg-query -W -f '${db:Status-Status} ${Package}\n' | sed -n 's/^config-files //p' | grep faceauth)
grep -q 'faceauth: kept the faces and the key in /var/lib/faceauth; to remove them: rm -r' /tmp/quiet.log ||
	{ cat /tmp/quiet.log; stop 'the purge does not say that it keeps the faces'; }
kept 'a purge without an answer'
for kept in $theirs; do
	must [ -e "$kept" ]
	grep -q "kept $kept; to remove it: rm -r $kept" /tmp/quiet.log ||
		{ cat /tmp/quiet.log; stop "the purge does not say that it keeps $kept"; }
done
mustnt [ -e /etc/faceauth/services ]
say 'purged without an answer: the stores and settings are kept, and it says so'

# shellcheck disable=SC2086
apt install $debs
kept 'another installation'
echo 'libpam-faceauth libpam-faceauth/purge-data boolean true' | debconf-set-selections
apt purge faceauth faceauth-office libpam-faceauth faceauth-lab faceauth-fleet-server faceauth-models
grep -q 'faceauth: removed the faces and the key in' /tmp/quiet.log || {
	cat /tmp/quiet.log
	stop 'the purge does not say that it removed the faces'
}
mustnt [ -e /var/lib/faceauth ]
# shellcheck disable=SC2086
rm -r $theirs
rmdir /etc/faceauth # in which only the settings of an office were kept
must [ -e /home/alice/.local/share/faceauth/faceauth.db ]
password 'after all of it'
left=$(find /etc /usr /lib /var /run /opt -xdev -name '*faceauth*' ! -path '/var/cache/apt/archives/*' \
	! -path '/usr/local/go/*' 2>/dev/null || true)
[ -z "$left" ] || stop "left behind: $left"
say 'purged with the answer yes: nothing is left but the gallery in a home'
