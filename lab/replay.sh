#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# lab/replay.sh PEOPLE [RUNS]: what the replay of a busy film costs, beside decoding it by ffmpeg in one thread, by turns:
# seconds of processor with the start of the programs, their ratio, and how many faces got a vector. PEOPLE is vidtimit_rot:
# a folder of frames (001.jpg and so on) for each person, of whom p0, p1 and p3 are in the film and p0 is enrolled. The film
# is of 1920x1080, 210 frames at 15 a second, in H.264 of 4 Mbit/s with noise; three heads turn and move all the time. BIN,
# if it is set, is the folder of the programs; more than one, with colons between them, are compared by turns. It needs ffmpeg
# with libx264, and jq.
set -euo pipefail
people=$(realpath "$1")
runs=${2:-3}
IFS=: read -ra programs <<<"${BIN:-bin}"
for i in "${!programs[@]}"; do programs[i]=$(realpath "${programs[i]}"); done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
heads=()
for p in p0 p1 p3; do heads+=(-framerate 15 -i "$people/$p/%03d.jpg"); done
ffmpeg -v error "${heads[@]}" -filter_complex "color=c=0x777268:s=1920x1080:r=15[b];
	[0:v]scale=460:-2[p];[1:v]scale=380:-2[q];[2:v]scale=520:-2[r];
	[b][p]overlay=x='80+220*abs(sin(t/3))':y=200[c];[c][q]overlay=x='760+120*sin(t)':y='320+60*cos(t)'[d];
	[d][r]overlay=x='1300-30*t':y=120[e];[e]noise=alls=6:allf=t" \
	-t 14 -c:v libx264 -preset veryfast -b:v 4M -pix_fmt yuv420p busy.mp4 </dev/null
lscpu | grep 'Model name'

TIMEFORMAT='%U %S'
for ((i = 0; i < runs; i++)); do
	alone=$( { time ffmpeg -v quiet -threads 1 -i busy.mp4 -f null - </dev/null; } 2>&1 | awk '{ print $1 + $2 }')
	for bin in "${programs[@]}"; do
		rm -rf faceauth.db* report
		FACEAUTH_GALLERY=faceauth.db "$bin/faceauth" enroll "$people/p0" --name p0 --quiet >/dev/null
		took=$( { time FACEAUTH_GALLERY=faceauth.db "$bin/faceauth" replay busy.mp4 --out report --quiet >/dev/null 2>&1; } 2>&1 |
			awk '{ print $1 + $2 }')
		echo "$bin: $took s, decoding alone $alone s, $(awk "BEGIN { printf \"%.2f\", $took / $alone }") times;" \
			"$(jq -s '"\(map(select(.held | not)) | length) of \(length) faces have a vector"' -r report/events.jsonl)"
	done
done
