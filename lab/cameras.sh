#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# lab/cameras.sh PICTURES: what cameras of five sizes cost, and sixteen of 1920x1080 with and without a substream.
# PICTURES is a folder of a person's frames (*.jpg), as p0 of vidtimit_rot. It needs ffmpeg with libx264, and an idle machine.
set -euo pipefail
pictures=$1
program=$PWD/bin/faceauth
export FACEAUTH_GALLERY
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
FACEAUTH_GALLERY=$folder/faceauth.db
"$program" enroll "$pictures" --name somebody --quiet >/dev/null

# film NAME WIDTH HEIGHT RATE SECONDS FROM TO: a textured wall with noise, and the person in it between FROM and TO.
film() {
	ffmpeg -v error -y -loop 1 -framerate 10 -i wall.png -framerate 10 -pattern_type glob -i "$pictures/*.jpg" \
		-filter_complex "[0]scale=$2:$3,format=yuv420p[b];[1]setpts=PTS-STARTPTS+$6/TB,scale=$8:-2[p];
			[b][p]overlay=W*0.4:H*0.3:enable='between(t,$6,$7)',noise=alls=4:allf=t" \
		-t "$5" -r 10 -c:v libx264 -preset veryfast -b:v "$4" -maxrate "$4" -bufsize "$4" -g 40 "$1" </dev/null
}

# cost LABEL SOURCE...: the processor time of an office and its eyes, as a share of one core.
cost() {
	local label=$1 TIMEFORMAT='%U %S %R'
	shift
	local took
	took=$( { time timeout --foreground -s INT 60 "$program" office "$@" --quiet >/dev/null 2>&1 || true; } 2>&1)
	echo "$took" | awk -v l="$label" '{ printf "%s: %.2f of a core\n", l, ($1 + $2) / $3 }'
}

ffmpeg -v error -f lavfi -i mandelbrot=size=1920x1080:rate=1 -frames:v 1 wall.png </dev/null
for size in "854 480 700k" "1280 720 1200k" "1920 1080 2M" "2560 1440 3500k" "3840 2160 7M"; do
	read -r width height rate <<<"$size"
	film still.mp4 "$width" "$height" "$rate" 20 99 99 320
	film busy.mp4 "$width" "$height" "$rate" 20 0 20 320
	cost "${width}x$height, still" c0=still.mp4
	cost "${width}x$height, busy" c0=busy.mp4
done

film large.mp4 1920 1080 2M 60 20 23 320
film small.mp4 640 360 300k 60 20 23 160
sources=()
for i in {0..15}; do sources+=("c$i=large.mp4"); done
cost "sixteen of 1920x1080" "${sources[@]}"
echo cameras: >office.yaml
for i in {0..15}; do
	for stream in "large $((18100 + i))" "small $((18200 + i))"; do
		read -r name port <<<"$stream"
		ffmpeg -v quiet -re -i "$name.mp4" -c copy -f mpegts -listen 1 "http://127.0.0.1:$port" </dev/null &
	done
	printf '  - {name: c%d, source: "http://127.0.0.1:%d", substream: "http://127.0.0.1:%d"}\n' \
		"$i" $((18100 + i)) $((18200 + i)) >>office.yaml
done
sleep 2
cost "sixteen of 1920x1080, with substreams of 640x360" --config office.yaml
