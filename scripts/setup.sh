#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Says what a build fetches and how much room it takes, and then installs Debian packages and fetches Go modules. If all
# is there, it does nothing and needs no network. Run it through make. With "login" it also installs the packages for the
# PAM module, and with "system" the packages for make test-system; make test needs none.
set -eu
cd "$(dirname "$0")/.."

say() { printf 'setup: %s\n' "$*"; }
stop() {
	printf 'setup: %s\n' "$*" >&2
	exit 1
}

# Packages whose file or command is missing.
need=''
want() { need="$need $1"; }
command -v gcc >/dev/null 2>&1 || want gcc
command -v g++ >/dev/null 2>&1 || want g++
command -v pkg-config >/dev/null 2>&1 || want pkg-config
for library in opencv4:libopencv-dev libavformat:libavformat-dev libswscale:libswscale-dev; do
	{ command -v pkg-config >/dev/null 2>&1 && pkg-config --exists "${library%:*}"; } || want "${library#*:}"
done
[ -f /usr/share/opencv4/haarcascades/haarcascade_frontalface_default.xml ] || want opencv-data

what=${1:-}
if [ "$what" = login ] || [ "$what" = system ]; then
	[ -f /usr/include/security/pam_modules.h ] || want libpam0g-dev
	[ -f /usr/include/crypt.h ] || want libcrypt-dev
fi
if [ "$what" = system ]; then
	{ [ -f /usr/share/dbus-1/system.conf ] && command -v dbus-daemon >/dev/null 2>&1; } || want dbus
	command -v pamtester >/dev/null 2>&1 || want pamtester
	# Programs that ask for a face. Display managers and sshd are not installed: they would change how people log in to
	# this machine; where they are, the tests use them: lightdm lightdm-gtk-greeter sddm openssh-server.
	for program in sudo pkexec at i3lock xsecurelock xdotool sway swaylock wtype; do
		command -v $program >/dev/null 2>&1 || want $program
	done
	command -v Xvfb >/dev/null 2>&1 || want xvfb
	{ command -v testsaslauthd >/dev/null 2>&1 || [ -x /usr/sbin/testsaslauthd ]; } || want sasl2-bin
	[ -x /usr/lib/polkit-1/polkitd ] || want polkitd
	command -v systemd-analyze >/dev/null 2>&1 || want systemd
	# They make HEIC and AVIF pictures for tests.
	command -v heif-enc >/dev/null 2>&1 || want libheif-examples
	command -v avifenc >/dev/null 2>&1 || want libavif-bin
	ls /usr/lib/*/security/pam_systemd.so >/dev/null 2>&1 || want libpam-systemd
	{ command -v mosquitto >/dev/null 2>&1 || [ -x /usr/sbin/mosquitto ]; } || want mosquitto
	{ command -v nginx >/dev/null 2>&1 || [ -x /usr/sbin/nginx ]; } || want nginx-light
	# The RTSP camera of the tests. Only the system's own interpreter has these bindings of Python.
	if ! /usr/bin/python3 -c "import gi; gi.require_version('GstRtspServer', '1.0')" >/dev/null 2>&1; then
		want gir1.2-gst-rtsp-server-1.0
		want python3-gi
	fi
	for so in coreelements videoconvert jpeg multifile rtp x264; do
		ls /usr/lib/*/gstreamer-1.0/libgst$so*.so >/dev/null 2>&1 || want_gst=yes
	done
	[ -z "${want_gst:-}" ] || need="$need gstreamer1.0-plugins-base gstreamer1.0-plugins-good gstreamer1.0-plugins-ugly"
	# Other systems have no such package; the tests of the page then skip, unless there is a browser.
	command -v chromium >/dev/null 2>&1 || ! grep -q '^ID=debian' /etc/os-release || want chromium
fi

# Without these packages neither Go's modules nor the models can be fetched by HTTPS.
[ -f /etc/ssl/certs/ca-certificates.crt ] || want ca-certificates

if ! command -v go >/dev/null 2>&1; then
	stop "Go is not installed; install Go 1.26 or newer from https://go.dev/dl/"
fi
# go_env asks Go outside the module: inside, an old Go would first fetch the version that go.mod asks for.
go_env() { (cd / && GOTOOLCHAIN=local go env "$1" 2>/dev/null); }
# Since 1.21 an older Go fetches that version by itself.
case $(go_env GOVERSION) in
go1.[0-9] | go1.[0-9].* | go1.1[0-9] | go1.1[0-9].* | go1.20 | go1.20.*)
	stop "$(go version) is too old; install Go 1.26 or newer from https://go.dev/dl/"
	;;
esac

# What is still to come: what, MB to fetch, MB on disk, and where. packaging/inside/demo.sh prints what was taken.
parts=''
part() {
	parts="$parts$1|$2|$3|$4
"
}
modules=$(go_env GOMODCACHE) cache=$(go_env GOCACHE)
networks=${FACEAUTH_MODELS:-${XDG_DATA_HOME:-${HOME:-/root}/.local/share}/faceauth/models}
case $(go_env GOVERSION) in
go1.2[1-5]*) [ "${GOTOOLCHAIN:-auto}" = local ] || part 'Go 1.26 itself' 65 240 "$modules" ;;
esac
wanted=$(sed -n 's|^.*gocv.io/x/gocv \(v[0-9.]*\)$|\1|p' go.mod)
[ -d "$modules/gocv.io/x/gocv@$wanted" ] || part 'Go modules and compiled code' 80 275 "$modules"
[ -e "$cache/faceauth-built" ] || part 'Go modules and compiled code' 0 400 "$cache"
[ -e "$networks/fr_feature.onnx" ] || [ -e /usr/share/faceauth/models/fr_feature.onnx ] || part 'neural networks' 41 85 "$networks"

# MB turns "1,302 kB" or "1.3 GB" into a whole number of megabytes.
MB() { printf '%s' "$1" | awk '{ gsub(",", "", $1); m["GB"] = 1e3; m["MB"] = 1; m["kB"] = 1e-3; print int($1 * m[$2] + .999) }'; }

# announce says in a table all that comes, and stops if there is no room for it.
announce() {
	[ -n "$parts" ] || return 0
	printf '%s' "$parts" | awk -F'|' '!($1 in fetch) { rows[++n] = $1 } { fetch[$1] += $2; disk[$1] += $3; f += $2; d += $3 }
		END { printf "setup: this fetches %d MB and takes %.1f GB of disk\n", f, d / 1000
			for (i = 1; i <= n; i++) printf "setup:   %-32s %5d MB %5.1f GB\n", rows[i], fetch[rows[i]], disk[rows[i]] / 1000 }'
	[ -z "$need" ] || say "the packages:$need"
	short=$(printf '%s' "$parts" | while IFS='|' read -r _ _ disk at; do
		while [ ! -d "$at" ] && [ "${at%/*}" != "$at" ]; do at=${at%/*}; done
		df -Pk "${at:-/}" 2>/dev/null | awk -v disk="$disk" -v at="${at:-/}" 'NR == 2 { print $1, int($4 / 1000), disk, at }'
	done | awk '{ need[$1] += $3; has[$1] = $2; at[$1] = at[$1] ? at[$1] " and " $4 : $4 }
		END { for (d in need) if (need[d] > has[d]) printf "%d MB are needed in %s, and %d MB are free there", need[d], at[d], has[d] }')
	[ -z "$short" ] || stop "$short; make room, then run make again"
}

if [ -n "$need" ]; then
	command -v apt-get >/dev/null 2>&1 ||
		stop "there is no apt-get here; install by other means what these Debian packages hold, then run make again:$need"
	sudo=''
	if [ "$(id -u)" -ne 0 ]; then
		command -v sudo >/dev/null 2>&1 ||
			stop "these packages are missing and only root can install them; as root run: apt-get update && apt-get install --no-install-recommends$need"
		# sudo forgets the proxy unless it is told.
		sudo='sudo --preserve-env=http_proxy,https_proxy,no_proxy'
	fi
	log=$(mktemp) || stop "no file can be made in ${TMPDIR:-/tmp}; is it full? TMPDIR names another folder"
	# apt-get reads only the variable in small letters, and downloads most packages by HTTP.
	http_proxy=${http_proxy:-${HTTP_PROXY:-${HTTPS_PROXY:-}}} https_proxy=${https_proxy:-${HTTPS_PROXY:-}}
	if [ -n "$http_proxy" ]; then export http_proxy; else unset http_proxy; fi
	if [ -n "$https_proxy" ]; then export https_proxy; else unset https_proxy; fi
	apt() {
		$sudo env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -q -o Acquire::http::Timeout=20 "$@" >>"$log" 2>&1
	}
	# plan says how much apt-get will fetch and install.
	plan() {
		# shellcheck disable=SC2086
		plan=$(LC_ALL=C apt-get -q --print-uris --assume-no install --no-install-recommends $need 2>>"$log") || true
		fetch=$(printf '%s\n' "$plan" | sed -n 's|^Need to get \(.*/\)\{0,1\}\(.*\) of archives.*|\2|p')
		takes=$(printf '%s\n' "$plan" | sed -n 's|^After this operation, \(.*\) of additional disk space.*|\1|p')
		[ -n "$takes" ] || return 0 # no lists yet
		part 'Debian packages' "$(MB "${fetch:-0 B}")" "$(MB "$takes")" /usr
		fetch=$(MB "${fetch:-0 B}")
		[ "$fetch" -eq 0 ] || part 'Debian packages' 0 "$fetch" /var/cache/apt/archives
		announce
		planned=yes
	}
	# What comes is said before sudo asks, if there are lists of packages.
	planned=
	plan
	if [ -n "$sudo" ]; then
		say "not root: sudo is used for apt-get, and may ask for your password"
	fi
	# The usual three tries for each list would take minutes without a network.
	# shellcheck disable=SC2086
	if ! { apt -o Acquire::Retries=1 update && { [ -n "$planned" ] || plan; } &&
		say 'installing the packages by apt-get' &&
		apt -o APT::Keep-Downloaded-Packages=false install -y --no-install-recommends $need; }; then
		tail -n 5 "$log" >&2
		why='is there a network?'
		if grep -q 'Proxy Authentication Required\| 407 ' "$log"; then
			why='the proxy wants a user name and a password: put them into http_proxy, http://USER:PASSWORD@HOST:PORT'
		elif grep -q 'Could not resolve\|Temporary failure resolving\|Could not connect\|Cannot initiate\|Connection failed\|Connection timed out\|Network is unreachable' "$log"; then
			if [ -n "${http_proxy:-}" ]; then
				why='its servers cannot be reached through the proxy of http_proxy; is that address right?'
			else
				why='its servers cannot be reached; is there a network? Behind a proxy run: http_proxy=http://HOST:PORT HTTPS_PROXY=http://HOST:PORT make demo'
			fi
		elif grep -q "No space left on device\|don't have enough free space" "$log"; then
			why='the disk is full; make room, then run make again'
		elif grep -q 'Could not get lock\|Unable to acquire the dpkg' "$log"; then
			why='another program installs packages; wait until it has ended, then run make again'
		elif grep -q 'is not in the sudoers\|a password is required\|incorrect password\|not allowed to' "$log"; then
			why="sudo refuses; ask an administrator to run: apt-get update && apt-get install --no-install-recommends$need"
		elif grep -q 'Unable to locate package\|has no installation candidate' "$log"; then
			why='this release does not have them; faceauth is made for Debian 12 and 13 and Ubuntu 24.04'
		fi
		stop "apt-get could not install:$need ($why; all it said is in $log)"
	fi
	rm -f "$log"
else
	announce
fi
# Only the modules of the programs: go mod download would fetch those of all tests, too.
sentence=''
[ -d "$modules/gocv.io/x/gocv@$wanted" ] || sentence='fetching Go modules'
sh scripts/step.sh "$sentence" go list -deps ./cmd/faceauth ./cmd/faceauth-eye ./cmd/faceauth-fleet-server
