#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Follows docs/office.md from the packages of /out to a first name, as a new user would: with its commands, but without
# systemd, which does not run in a tree. The camera is a recording of the demo.
. /root/faceauth/packaging/inside/common.sh

apt update
apt install curl
mkdir /srv/new
cp /out/*"+${release}"_*.deb /srv/new
cd /srv/new
# A tree has no sudo and no editor.
sudo() { "$@"; }
sudoedit() {
	sed -i 's|source: .*|source: /srv/faceauth-demo/alice.avi|' "$1"
	echo 'stay: true' >>"$1"
}
journalctl() { :; }
sed -n '/^## From the package/,/^## Who/s/^    //p' /root/faceauth/docs/office.md | grep -v 'models install\|people' >/tmp/commands
[ "$(wc -l </tmp/commands)" -eq 5 ] || stop "docs/office.md has other commands: $(cat /tmp/commands)"
sed -i 's/^sudo apt-get/apt/; s/enable --now/enable/' /tmp/commands
. /tmp/commands
systemctl is-enabled faceauth-office@home >/dev/null || stop 'the office is not enabled'
quietly systemd-analyze verify --man=no faceauth-office@home.service

cd /srv && quietly faceauth demo
chmod -R a+rX /srv
state=/var/lib/faceauth-office run=/run/faceauth-office-home
install -d -m 700 -o faceauth-office -g faceauth-office $state $run
unit=/lib/systemd/system/faceauth-office@.service
# shellcheck disable=SC2046
setpriv --reuid faceauth-office --regid faceauth-office --groups video env HOME=$state XDG_RUNTIME_DIR=$run \
	$(sed -n 's/^ExecStart=//p' $unit | sed 's/%i/home/g') >/tmp/office.log 2>&1 &
office=$!
page=http://127.0.0.1:8090
tries=0
until curl -fs $page/api/strangers | grep -q '"id":'; do
	tries=$((tries + 1))
	[ $tries -lt 600 ] && kill -0 $office || { cat /tmp/office.log; stop 'nobody unknown came'; }
	sleep .1
done
curl -fs $page/api/name -H 'Content-Type: application/json' -d '{"group":1,"name":"alice"}' >/dev/null ||
	stop 'the stranger got no name'
people=$(faceauth people --gallery $state/home.db)
echo "$people" | grep -q alice || stop "alice is not among the people: $people"
[ "$(find $state -not -user faceauth-office)" = '' ] || stop "not the office's: $(find $state -not -user faceauth-office)"
kill $office
wait $office || stop "the office ended badly: $(cat /tmp/office.log)"
say "a first name, $tries tenths of a second after the office began"
