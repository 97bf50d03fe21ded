#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# lab/albums/album.sh PEOPLE [BLOCKS]: photographs of 12 megapixels, looked at by faceauth, by @vladmandic/human and by
# @vladmandic/face-api in Node with their WASM backends, by turns: seconds of processor and of wall with the start, and
# faces found. PEOPLE has a folder of frames (*.jpg) for each person, as vidtimit_rot; each photograph shows one to four
# heads before noise. It needs ffmpeg, node, npm and jq; BIN, if it is set, is the folder of the programs. CI does not
# run it.
set -euo pipefail
people=$(realpath "$1")
blocks=${2:-3}
photographs=8 # in each block
bin=$(realpath "${BIN:-bin}")
here=$(realpath "$(dirname "$0")")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cp "$here"/{package.json,package-lock.json,peer.mjs} .
npm ci --silent --ignore-scripts --no-audit --no-fund
node -p '`node ${process.version}`'
lscpu | grep 'Model name'

heads=("$people"/*/*.jpg)
n=0 shown=0
# photograph FILE: heads of 150 to 600 pixels, one in each quarter of it that is used.
photograph() {
	local inputs=() filter='[0]noise=alls=30[0v]' last=0v count=$((n % 4 + 1)) i
	for ((i = 1; i <= count; i++)); do
		inputs+=(-i "${heads[n * 97 % ${#heads[@]}]}")
		filter+=";[$i]crop=iw*0.6:ih:iw*0.2:0,scale=$((150 + n * 61 % 450)):-2[p$i]"
		filter+=";[$last][p$i]overlay=$(((i - 1) % 2 * 2000 + 300 + n * 37 % 900)):$(((i - 1) / 2 * 1500 + 100 + n * 53 % 500))[${i}v]"
		last=${i}v n=$((n + 1))
	done
	shown=$((shown + count))
	ffmpeg -v error -f lavfi -i color=gray:s=4000x3000 "${inputs[@]}" -filter_complex "$filter" -map "[$last]" \
		-frames:v 1 -q:v 3 "$1" </dev/null
}
for ((b = 0; b < blocks; b++)); do
	mkdir "$b"
	for ((i = 0; i < photographs; i++)); do photograph "$b/$i.jpg"; done
done
export FACEAUTH_GALLERY=$folder/faceauth.db
"$bin/faceauth" enroll "$(dirname "${heads[0]}")" --name somebody --quiet >/dev/null

faceauth() { "$bin/faceauth" who "$1" --json | jq -s 'map(.faces | length) | add'; }
human() { node peer.mjs human "$1"/*.jpg; }
face-api() { node peer.mjs face-api "$1"/*.jpg; }
TIMEFORMAT='%U %S %R'
for ((b = 0; b < blocks; b++)); do
	for program in faceauth human face-api; do
		took=$({ time $program "$b" >>"$program.faces"; } 2>&1)
		echo "$took" >>"$program.time"
	done
done
for program in faceauth human face-api; do
	awk -v p=$program -v of=$((blocks * photographs)) -v s=$shown 'NR == FNR { f += $1; next }
		{ c += $1 + $2; w += $3 }
		END { printf "%s: %.2f s of processor and %.2f s of wall each, %d faces found of %d shown\n", p, c / of, w / of, f, s }' \
		$program.faces $program.time
done
