#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Enrols two people from stills in the folder $1 and replays stills of three people, with the installed program. It
# checks whether the verdicts are the same as on every other release and architecture. It runs in busybox, too.
set -eu

stop() {
	printf 'stills: %s\n' "$*" >&2
	exit 1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HOME="$work" XDG_DATA_HOME="$work/share"
cp -R "$1" "$work/stills"
cd "$work"

# The eye must have its whole sandbox: the program warns if a part is missing.
runs() {
	log=$1
	shift
	faceauth "$@" >"$log" 2>&1 || { cat "$log"; stop "failed: faceauth $*"; }
	! grep -F 'not in the whole of its sandbox' "$log" || stop "no whole sandbox: faceauth $*"
}
runs enrol enroll stills/s1 --name alice --frames 4
runs enrol enroll stills/s2 --name bob --frames 4

# The label, the number of faces, and the number of faces in the events with that label.
replays() {
	runs replay replay "stills/$1" --out "$1"
	grep -q "^  *$2  *$3 faces " replay || { cat replay; stop "the replay of $1 must end with $2 in $3 faces"; }
	label=$2
	[ "$2" != unknown ] || label=
	[ "$(grep -c "\"label\":\"$label\"" "$1/events.jsonl")" = "$3" ] && [ "$(grep -c '"label":' "$1/events.jsonl")" = "$3" ] || {
		cat "$1/events.jsonl"
		stop "the events of $1 must be $3 faces, all of $2"
	}
	printf 'stills: %s: %s, %s faces\n' "$1" "$2" "$3"
}
replays s1 alice 4
replays s2 bob 5
replays s3 unknown 10
echo 'stills: the verdicts are as they should be'
