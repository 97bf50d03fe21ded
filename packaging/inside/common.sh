# SPDX-License-Identifier: Apache-2.0
# The functions that the scripts of this folder share. They run as root in a tree that packaging/tree.sh has made.
set -eu

say() { printf '%s: %s\n' "$RELEASE" "$*"; }
stop() {
	printf '%s: %s\n' "$RELEASE" "$*" >&2
	exit 1
}

# Runs a command quietly, and shows its output if it fails.
quietly() {
	if ! "$@" >/tmp/quiet.log 2>&1; then
		tail -n 40 /tmp/quiet.log >&2
		stop "failed: $*"
	fi
}

apt() { quietly apt-get -q -y --no-install-recommends -o APT::Keep-Downloaded-Packages=true "$@"; }

# The release as it is in the names of packages: a folder may hold packages of several.
# shellcheck disable=SC1091
release=$(. /etc/os-release && case $ID in debian) echo "deb$VERSION_ID" ;; *) echo "$ID$VERSION_ID" ;; esac)

# Installs what the packages are built with, by a changelog, which packaging/build.sh writes only later.
build_dependencies() {
	mkdir /tmp/deps
	cp -R /root/faceauth/packaging/debian /tmp/deps/debian
	printf '%s\n\n  * %s\n\n -- %s\n' 'faceauth (0) unstable; urgency=medium' 'For the list of packages.' \
		'nobody <nobody@faceauth.invalid>  Thu, 01 Jan 1970 00:00:00 +0000' >/tmp/deps/debian/changelog
	apt build-dep "$@" /tmp/deps
}

# Clones the project for bob, a user without rights.
for_user() {
	useradd -m bob
	git clone -q /root/faceauth.git /home/bob/faceauth
	chown -R bob: /home/bob/faceauth ${GOCACHE:+"${GOCACHE%/*}"}
}

# Runs a command as bob, in the clone. Nothing is set but where this machine reaches others, and the cache of repeated
# builds.
as_user() {
	quietly env -i -C /home/bob/faceauth PATH="$PATH" ${SSL_CERT_FILE:+SSL_CERT_FILE="$SSL_CERT_FILE"} \
		${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
		${HTTPS_PROXY:+HTTPS_PROXY="$HTTPS_PROXY"} ${GOCACHE:+GOCACHE="$GOCACHE" GOMODCACHE="$GOMODCACHE"} \
		runuser -u bob -- env HOME=/home/bob USER=bob LOGNAME=bob "$@"
}

# The summary that make demo must end with, on every release and architecture.
demo='against the script: of 552 faces of alice and bob 552 were named rightly and 0 wrongly; of 144 faces of the stranger 0 were accepted'
