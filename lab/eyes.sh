#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# lab/eyes.sh PICTURES CAMERAS...: what so many cameras of 1920x1080 at 15 frames a second cost at once, by
# HTTP: with sensor noise and a face that stands still, and without both. It prints processor time as a
# share of one core, beside that of decoding alone; how much of the film was taken from the cameras, 1.00
# if all kept up; and the memory of each eye. PICTURES is a folder of a person's frames (*.jpg), as p0 of
# vidtimit_rot; BIN, if it is set, is the folder of the programs. WARM and MEASURED, in seconds, are how
# long it waits and measures. It needs ffmpeg with libx264, and an idle machine.
set -euo pipefail
pictures=$(realpath "$1")
shift
bin=$(realpath "${BIN:-bin}")
warm=${WARM:-60} seconds=${MEASURED:-30} # what is free is given back after each look, the first of which takes longest
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
export FACEAUTH_GALLERY=$folder/faceauth.db
"$bin/faceauth" enroll "$pictures" --name somebody --quiet >/dev/null

ffmpeg -v error -f lavfi -i mandelbrot=size=1920x1080:rate=1 -frames:v 1 wall.png </dev/null
all=("$pictures"/*.jpg)
# film NAME NOISE FACE: 20 s as a camera encodes them, without B frames.
film() {
	ffmpeg -v error -loop 1 -framerate 15 -i wall.png -loop 1 -framerate 15 -i "${all[0]}" \
		-filter_complex "[0]format=yuv420p[b];[1]scale=320:-2[p];[b][p]overlay=W*0.4:H*0.3:enable=$3,noise=alls=$2:allf=t" \
		-t 20 -c:v libx264 -preset veryfast -bf 0 -refs 1 -b:v 4M -maxrate 4M -bufsize 4M -g 30 "$1.mp4" </dev/null
}
film busy 6 1
film still 0 0

used() { # used PROCESS...: their processor time in hundredths of a second
	for p in "$@"; do cut -d' ' -f14,15 "/proc/$p/stat"; done | awk '{ t += $1 + $2 } END { print t }'
}
sent() { # the microseconds of film that all cameras have given
	for f in sent*; do grep '^out_time_us=' "$f" | tail -n 1; done | awk -F= '{ t += $2 } END { print t }'
}
below() { # below PROCESS: the processes that it started, and those that these did
	local p
	for p in $(pgrep -P "$1"); do echo "$p"; below "$p"; done
}

for cameras in "$@"; do for name in busy still; do
	TIMEFORMAT='%U %S'
	alone=$( { time ffmpeg -v quiet -threads 1 -i $name.mp4 -f null - </dev/null; } 2>&1 | awk '{ print ($1 + $2) / 20 }')
	sources=() servers=()
	for ((i = 0; i < cameras; i++)); do
		port=$((18300 + i))
		ffmpeg -v quiet -stats_period 1 -progress "sent$i" -re -stream_loop -1 -i $name.mp4 -c copy -f mpegts \
			-listen 1 "http://127.0.0.1:$port" </dev/null &
		servers+=($!)
		sources+=("c$i=http://127.0.0.1:$port")
	done
	sleep 5
	"$bin/faceauth" office "${sources[@]}" --quiet >/dev/null 2>errors &
	office=$!
	sleep $warm
	mapfile -t all < <(below $office)
	before=$(used $office "${all[@]}") film=$(sent)
	sleep $seconds
	after=$(used $office "${all[@]}") film=$(($(sent) - film))
	echo "$name, $cameras cameras: $(awk "BEGIN { printf \"%.3f of a core each, decoding alone %.3f, %.2f of the film\",
		($after - $before) / 100 / $seconds / $cameras, $alone, $film / 1e6 / $seconds / $cameras }")"
	for p in "${all[@]}"; do
		awk -v eye="$p" '/^(Pss|Private_Clean|Private_Dirty):/ { x[$1] = $2 / 1024 }
			END { printf "  process %d: %.1f MB of its own, Pss %.1f MB\n", eye, x["Private_Clean:"] + x["Private_Dirty:"], x["Pss:"] }' \
			"/proc/$p/smaps_rollup"
	done
	kill -INT $office
	wait $office || true
	cat errors
	kill "${servers[@]}" 2>/dev/null || true
	wait "${servers[@]}" 2>/dev/null || true
	rm -f sent*
done; done
