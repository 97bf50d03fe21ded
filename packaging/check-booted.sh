#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Boots a copy of this system, installs the packages of a folder into it, and checks whether systemd and the
# packages fit together: a request starts the service, an upgrade restarts it, a removal stops it.
#
#   packaging/check-booted.sh OUT
#
# It needs root, cgroup2, and a system of the packages' release with the dependencies of the packages installed. Nothing
# in this system changes: the copy is in memory.
set -eu

stop() {
	printf 'booted: %s\n' "$*" >&2
	exit 1
}

[ $# -eq 1 ] || stop 'say where the packages are: packaging/check-booted.sh OUT'
[ "$(id -u)" -eq 0 ] || stop 'only root can boot a copy; run it with sudo'
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck disable=SC1091
release=$(. /etc/os-release && case $ID in debian) echo "deb$VERSION_ID" ;; *) echo "$ID$VERSION_ID" ;; esac)
arch=$(dpkg --print-architecture)
share=$(mktemp -d /var/tmp/faceauth-booted-XXXXXX)
booted=
trap '[ -z "$booted" ] || kill "$booted" 2>/dev/null || true; wait 2>/dev/null; rm -rf "$share"' EXIT
trap 'exit 1' HUP INT TERM

for deb in "$1"/*"+${release}"_*.deb; do
	case $deb in *_all.deb | *"_$arch.deb") ;; *) continue ;; esac
	[ -f "$deb" ] || stop "there are no packages of $release in $1"
	cp "$deb" "$share/"
	dpkg-deb -R "$deb" "$share/tree"
	sed -i 's/^Version: .*/&.1/; s/\(faceauth (= [^)]*\))/\1.1)/' "$share/tree/DEBIAN/control"
	mkdir -p "$share/next"
	dpkg-deb -Znone -b "$share/tree" "$share/next/$(basename "$deb")" >/dev/null
	rm -rf "$share/tree"
done
[ -d "$share/next" ] || stop "there are no packages of $release for $arch in $1"

cat >"$share/inside.sh" <<'END'
set -eu
stop() { printf 'booted: %s\n' "$*" >&2; journalctl -q -u faceauth --no-pager | tail -n 20 >&2; exit 1; }
quietly() { "$@" >/tmp/quiet.log 2>&1 || { tail -n 20 /tmp/quiet.log >&2; stop "failed: $*"; }; }
pid() { systemctl show -p MainPID --value faceauth; }
export DEBIAN_FRONTEND=noninteractive
cd /srv/share

# A container's policy allows no service to start. A system has no such policy.
rm -f /usr/sbin/policy-rc.d
quietly dpkg -i ./*.deb
[ "$(systemctl show -p LoadState --value faceauth)" = loaded ] || stop 'systemd does not know the service'
[ "$(pid)" = 0 ] || stop 'the service runs, and nobody has asked'
quietly sh -c 'faceauth login status 2>&1 | grep "no profile"'
first=$(pid)
[ "$first" -gt 0 ] || stop 'no request has started the service'
[ "$(stat -c %U "/proc/$first")" = faceauth ] || stop "the service runs as $(stat -c %U "/proc/$first")"
[ -n "$(ls -A /var/lib/faceauth)" ] || stop 'the service made no key'
key=$(sha256sum /var/lib/faceauth/key.sealed)
echo 'booted: installed, and started by a request'

quietly dpkg -i next/*.deb
second=$(pid)
[ "$second" != 0 ] && [ "$second" != "$first" ] || stop "an upgrade did not restart the service: $first, then $second"
quietly sh -c 'faceauth login status 2>&1 | grep "no profile"'
[ "$(sha256sum /var/lib/faceauth/key.sealed)" = "$key" ] || stop 'an upgrade changed the key'
echo 'booted: an upgrade restarts the service and keeps the key'

quietly dpkg -r libpam-faceauth faceauth-lab faceauth-office faceauth-fleet-server faceauth
[ ! -e "/proc/$second" ] || stop 'a removal does not stop the service'
[ "$(sha256sum /var/lib/faceauth/key.sealed)" = "$key" ] || stop 'a removal changed the key'
[ "$(systemctl show -p LoadState --value faceauth)" = not-found ] || stop 'systemd still knows the service'
quietly dpkg -P libpam-faceauth faceauth faceauth-office faceauth-fleet-server faceauth-lab faceauth-models
[ -e /var/lib/faceauth/key.sealed ] || stop 'a purge without an answer removed the key'
[ -z "$(systemctl list-units --failed --no-legend 'faceauth*')" ] || stop 'a unit has failed'
echo 'booted: a removal stops the service, and a purge without an answer keeps the key'
END

bash "$here/../internal/boottest/boot" "$share" >"$share/boot.log" 2>&1 &
booted=$!
for _ in $(seq 300); do
	[ ! -s "$share/pid" ] || break
	sleep .1
done
[ -s "$share/pid" ] || stop "the copy does not boot: $(cat "$share/boot.log")"
system=$(cat "$share/pid")
within() { nsenter -t "$system" -m -p -C -u -i -n -r -w "$@"; }
for _ in $(seq 600); do
	! within systemctl is-active -q multi-user.target 2>/dev/null || ready=yes
	[ -z "${ready:-}" ] || break
	sleep .1
done
[ -n "${ready:-}" ] || stop 'the copy does not end its boot within a minute'
timeout 300 nsenter -t "$system" -m -p -C -u -i -n -r -w env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root sh /srv/share/inside.sh
