#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a step of make: scripts/step.sh SENTENCE COMMAND...
# It prints the sentence, unless it is empty, and of what the command says only why it failed: a full disk, no network,
# a proxy, an old Go.
set -eu

sentence=$1
shift
[ -z "$sentence" ] || printf 'setup: %s\n' "$sentence"
log=$(mktemp 2>/dev/null) || {
	echo "setup: no file can be made in ${TMPDIR:-/tmp}; is it full? TMPDIR names another folder" >&2
	exit 1
}
trap 'rm -f "$log"' EXIT
if "$@" >"$log" 2>&1; then
	exit 0
fi
tail -n 15 "$log" >&2
proxy=${https_proxy:-${HTTPS_PROXY:-}}
if grep -qi 'no space left on device\|disk quota exceeded' "$log"; then
	full=$(grep -io '/[^ :]*: no space left' "$log" | head -n 1 | sed 's/: .*//')
	why="the disk is full${full:+ at $full}; make room, then run make again: what is there already is kept"
elif grep -q 'requires go >=\|toolchain not available\|invalid go version' "$log"; then
	why='this Go is too old, and may fetch no newer one; install Go 1.26 or newer from https://go.dev/dl/'
elif grep -qi 'proxyconnect\|407 \|proxy authentication' "$log"; then
	why="the proxy $(printf '%s' "$proxy" | sed 's|//.*@|//|') does not let it through; is HTTPS_PROXY right?"
elif grep -qi 'dial tcp\|no such host\|i/o timeout\|network is unreachable\|connection refused\|tls: \|x509: ' "$log"; then
	why='a server cannot be reached; is there a network? Behind a proxy set HTTPS_PROXY=http://HOST:PORT'
else
	why="that is the end of what it said"
fi
echo "setup: this failed: ${sentence:-$*}: $why" >&2
exit 1
