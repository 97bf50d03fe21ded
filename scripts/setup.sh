#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the packages that faceauth needs to be built, and prints what it installs. If everything is installed, it
# does nothing and needs no network. Run it through make. With "login" it also installs the packages for the PAM module,
# and with "system" the packages for make test-system; make test needs none.
set -eu

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
{ command -v pkg-config >/dev/null 2>&1 && pkg-config --exists opencv4; } || want libopencv-dev
[ -f /usr/share/opencv4/haarcascades/haarcascade_frontalface_default.xml ] || want opencv-data

what=${1:-}
if [ "$what" = login ] || [ "$what" = system ]; then
	[ -f /usr/include/security/pam_modules.h ] || want libpam0g-dev
	[ -f /usr/include/crypt.h ] || want libcrypt-dev
fi
if [ "$what" = system ]; then
	{ [ -f /usr/share/dbus-1/system.conf ] && command -v dbus-daemon >/dev/null 2>&1; } || want dbus
	command -v pamtester >/dev/null 2>&1 || want pamtester
	# Programs that ask for a face. Display managers are not installed, because they would change how people log in to
	# this machine; where they are, the tests use them: lightdm lightdm-gtk-greeter sddm.
	for program in sudo pkexec i3lock xdotool sway swaylock wtype; do
		command -v $program >/dev/null 2>&1 || want $program
	done
	command -v Xvfb >/dev/null 2>&1 || want xvfb
	[ -x /usr/lib/polkit-1/polkitd ] || want polkitd
	command -v systemd-analyze >/dev/null 2>&1 || want systemd
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
# Since 1.21 an older Go fetches the version that go.mod asks for by itself.
case $(go env GOVERSION 2>/dev/null) in
go1.[0-9] | go1.[0-9].* | go1.1[0-9] | go1.1[0-9].* | go1.20 | go1.20.*)
	stop "$(go version) is too old; install Go 1.26 or newer from https://go.dev/dl/"
	;;
esac

if [ -n "$need" ]; then
	command -v apt-get >/dev/null 2>&1 ||
		stop "there is no apt-get here; install by other means what these Debian packages hold, then run make again:$need"
	sudo=''
	if [ "$(id -u)" -ne 0 ]; then
		command -v sudo >/dev/null 2>&1 ||
			stop "these packages are missing and only root can install them; as root run: apt-get update && apt-get install --no-install-recommends$need"
		# sudo forgets the proxy unless it is told.
		sudo='sudo --preserve-env=http_proxy,https_proxy,no_proxy'
		say "not root: sudo is used for apt-get, and may ask for your password"
	fi
	log=$(mktemp) || stop "no file can be made in ${TMPDIR:-/tmp}; is it full? TMPDIR names another folder"
	# apt-get reads only the variable in small letters, and downloads most packages by HTTP.
	http_proxy=${http_proxy:-${HTTP_PROXY:-${HTTPS_PROXY:-}}} https_proxy=${https_proxy:-${HTTPS_PROXY:-}}
	if [ -n "$http_proxy" ]; then export http_proxy; else unset http_proxy; fi
	if [ -n "$https_proxy" ]; then export https_proxy; else unset https_proxy; fi
	apt() {
		$sudo env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -q -o Acquire::http::Timeout=20 "$@" >>"$log" 2>&1
	}
	# free prints the free space below a folder in kB; kB turns 1.3 GB into a number of them.
	free() { df -Pk "$1" 2>/dev/null | awk 'NR == 2 { print $4 }'; }
	kB() { printf '%s' "$1" | awk '{ gsub(",", "", $1); m["GB"] = 1e6; m["MB"] = 1e3; m["kB"] = 1; print int($1 * m[$2]) }'; }
	# room says how much apt-get will fetch and install, and stops if that does not fit.
	room() {
		# shellcheck disable=SC2086
		plan=$($sudo env LC_ALL=C apt-get -q --assume-no install --no-install-recommends $need 2>>"$log") || true
		fetch=$(printf '%s\n' "$plan" | sed -n 's|^Need to get \(.*/\)\{0,1\}\(.*\) of archives.*|\2|p')
		takes=$(printf '%s\n' "$plan" | sed -n 's|^After this operation, \(.*\) of additional disk space.*|\1|p')
		say "installing with apt-get:$need${takes:+ ($fetch to fetch, $takes when installed)}"
		for part in "/usr:${takes:-0 B}" "/var/cache/apt/archives:${fetch:-0 B}"; do
			has=$(free "${part%%:*}")
			[ "${has:-0}" -gt "$(kB "${part#*:}")" ] || [ -z "$has" ] ||
				stop "the packages need ${part#*:} in ${part%%:*}, and $((has / 1000)) MB are free there; make room, then run make again"
		done
	}
	# The usual three tries for each list would take minutes without a network.
	# shellcheck disable=SC2086
	if ! { apt -o Acquire::Retries=1 update && room && apt install -y --no-install-recommends $need; }; then
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
fi
