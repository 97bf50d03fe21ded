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

# The summary that make demo must end with, on every release and architecture.
demo='of 550 faces of alice and bob 550 were named rightly and 0 wrongly; of 144 faces of the stranger 0 were accepted'
