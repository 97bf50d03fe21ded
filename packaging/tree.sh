#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a script of packaging/inside as root in a fresh system of another release, and throws the system away:
#
#   packaging/tree.sh bookworm build OUT      builds the packages of HEAD into the folder OUT
#   packaging/tree.sh bookworm packages OUT   installs them, upgrades, removes and purges them
#   packaging/tree.sh bookworm demo           make demo alone
#   packaging/tree.sh bookworm empty          all that README, docs/packages.md, docs/library.md and examples print
#   packaging/tree.sh bookworm user           make demo twice, as a user with sudo
#   packaging/tree.sh bookworm office OUT     from the packages to an office with a first name, by docs/office.md
#   packaging/tree.sh bookworm container OUT  the lines of the Dockerfile: first the first stage, then the second
#   packaging/tree.sh trixie boot OUT         a system in OUT/root, for internal/boottest (make test-boot RELEASE=trixie)
#   packaging/tree.sh bookworm shell          a shell, to look around
#   packaging/tree.sh bookworm arm64 OUT      builds those of arm64, and replays stills in an emulated machine
#
# Releases are bookworm, trixie and noble. ARCH=arm64 takes a tree of that architecture, whose programs qemu-user runs.
# No eye works in such a tree, as qemu-user has no seccomp; the script arm64 takes a tree of amd64, and a whole emulated
# machine. The script needs root, debootstrap, and for another architecture qemu-user-static. Trees lie in
# FACEAUTH_TREES, or /var/tmp/faceauth-trees. The first use of a release fetches it, and fetched packages are kept
# beside it. If SSL_CERT_FILE is set, as behind a proxy with a certificate of its own, the tree trusts that file, too.
# Nothing of this machine is in a tree but its Go, and no setting of Go is made: modules are fetched, and everything is
# compiled. For repeated builds FACEAUTH_TREE_CACHE names a folder that keeps both.
set -eu

stop() {
	printf 'tree: %s\n' "$*" >&2
	exit 1
}

[ $# -ge 2 ] || stop 'say the release and the script: packaging/tree.sh bookworm build OUT'
release=$1 script=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
[ "$script" = shell ] || [ -f "$here/inside/$script.sh" ] || stop "there is no packaging/inside/$script.sh"
[ "$(id -u)" -eq 0 ] || stop 'only root can make a tree; run it with sudo'
command -v debootstrap >/dev/null 2>&1 || stop 'there is no debootstrap; run: apt-get install debootstrap'
command -v go >/dev/null 2>&1 || stop 'there is no go in PATH; sudo may have taken it out: sudo env PATH="$PATH" packaging/tree.sh'

native=$(dpkg --print-architecture)
arch=${ARCH:-$native}
trees=${FACEAUTH_TREES:-/var/tmp/faceauth-trees}
base=$trees/$release-$arch
archives=$trees/$release-$arch.archives
mkdir -p "$archives/partial"
if [ ! -e "$base/.complete" ]; then
	components=main
	[ "$release" != noble ] || components=main,universe
	# noble: the debootstrap of Debian 12 does not know it, and its keys are in ubuntu-archive-keyring.
	[ -e "/usr/share/debootstrap/scripts/$release" ] ||
		stop "this debootstrap does not know $release; a newer one does, as that of Debian 13"
	[ "$arch" = "$native" ] || [ -e "/proc/sys/fs/binfmt_misc/qemu-aarch64" ] ||
		stop "programs of $arch do not run here; run: apt-get install qemu-user-static binfmt-support"
	rm -rf "$base"
	printf 'tree: fetching %s for %s\n' "$release" "$arch" >&2
	debootstrap --variant=minbase --arch="$arch" --components="$components" "$release" "$base" >"$trees/$release-$arch.log" 2>&1 ||
		stop "debootstrap failed; is there a network? All it said is in $trees/$release-$arch.log"
	: >"$base/.complete"
fi

out=
if [ $# -ge 1 ]; then
	mkdir -p "$1"
	out=$(cd "$1" && pwd)
	shift
fi

work=$(mktemp -d "$trees/run-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
mkdir "$work/upper" "$work/work" "$work/root"
mkdir -p "$work/upper/root/faceauth" "$work/upper/out" "$work/upper/root/models"
# Only what is committed.
git -c safe.directory='*' clone -q --bare --no-hardlinks "$here/.." "$work/upper/root/faceauth.git"
git -c safe.directory='*' -C "$here/.." archive HEAD | tar -x -C "$work/upper/root/faceauth"
# These settings stop apt-get from asking questions and from starting services.
printf '#!/bin/sh\nexit 101\n' >"$work/upper/policy" && mkdir -p "$work/upper/usr/sbin" &&
	install -m 755 "$work/upper/policy" "$work/upper/usr/sbin/policy-rc.d"
rm "$work/upper/policy"
certificates=
[ -z "${SSL_CERT_FILE:-}" ] || { install -D -m 644 "$SSL_CERT_FILE" "$work/upper/srv/ca.crt" && certificates=SSL_CERT_FILE=/srv/ca.crt; }

GOROOT=$(go env GOROOT)
command="sh /root/faceauth/packaging/inside/$script.sh"
[ "$script" != shell ] || command='bash -i'
cache=
if [ -n "${FACEAUTH_TREE_CACHE:-}" ]; then
	cache=$FACEAUTH_TREE_CACHE/$release-$arch
	mkdir -p "$cache"
fi
# All mounts and programs are in a namespace of their own, and are gone when the script ends.
export base work out cache archives GOROOT
# shellcheck disable=SC2016
unshare --mount --pid --fork --kill-child sh -euc '
	mount -t overlay overlay -o "lowerdir=$base,upperdir=$work/upper,workdir=$work/work" "$work/root"
	cd "$work/root"
	mkdir -p ".$GOROOT" srv/cache
	mount -t proc proc proc
	mount -t tmpfs tmpfs dev
	for d in null zero full random urandom tty; do : >"dev/$d"; mount --bind "/dev/$d" "dev/$d"; done
	ln -s /proc/self/fd dev/fd
	mkdir dev/shm dev/pts && mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts && ln -s pts/ptmx dev/ptmx
	mount --bind "$GOROOT" ".$GOROOT" && mount -o remount,ro,bind ".$GOROOT"
	mount --bind "$archives" var/cache/apt/archives
	[ -z "$cache" ] || mount --bind "$cache" srv/cache
	[ -z "$out" ] || mount --bind "$out" out
	cp /etc/resolv.conf etc/resolv.conf
	exec chroot . /usr/bin/env -i "$@"' sh \
	PATH="$GOROOT/bin:/usr/sbin:/usr/bin:/sbin:/bin" HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
	TERM="${TERM:-dumb}" RELEASE="$release" \
	${cache:+GOCACHE=/srv/cache/build GOMODCACHE=/srv/cache/mod} \
	${certificates:+"$certificates"} http_proxy="${http_proxy:-}" https_proxy="${https_proxy:-}" HTTPS_PROXY="${HTTPS_PROXY:-}" \
	sh -c "$command"
