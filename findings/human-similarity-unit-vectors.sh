#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Human 3.3.6 (npm: @vladmandic/human), match.similarity and match.find of face descriptors of length 1, as ArcFace,
# FaceNet and SFace give them: the square of the distance is multiplied by 25, its root is taken for a per cent, and what
# is then above 0.8 counts as 1. Unit vectors are at most 2 apart, which is 10 per cent. So all of them are equal.
# Expected: "0 is no similarity and 1 is perfect similarity", so 1 for the same vector and 0 for its opposite.
# Seen: 1 for the same, for a right angle and for the opposite; 20 times as long, they are 1, 0 and 0.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >package-lock.json <<'JSON'
{"name": "finding", "lockfileVersion": 3, "packages": {
  "": {"name": "finding", "dependencies": {"@vladmandic/human": "3.3.6"}},
  "node_modules/@vladmandic/human": {"version": "3.3.6",
    "integrity": "sha512-Nr5mPfq1gQ+uKeXY5uM3Fj8UxvF5CEh2s6txM5wRThqaW0mF9huooOuZSrT8hhGho0hGaXLFdAwfD/2+teCv6A=="}}}
JSON
echo '{"name": "finding", "dependencies": {"@vladmandic/human": "3.3.6"}}' >package.json
npm ci --silent --ignore-scripts --no-audit --no-fund
cat >run.mjs <<'JS'
// The file for browsers holds all that it needs; it asks for Node's modules only where it sees Node.
Object.defineProperty(process, 'versions', { value: {} })
const { match } = await import('./node_modules/@vladmandic/human/dist/human.esm.js')
const length = 128
const vector = (sign, norm) => Array.from({ length }, (_, i) => sign(i) * norm / Math.sqrt(length))
const same = () => 1
const others = { same, 'right angle': i => i % 2 ? 1 : -1, opposite: () => -1 }
const seen = [1, 20].map(norm => Object.entries(others).map(([name, sign]) => {
	const of = match.similarity(vector(same, norm), vector(sign, norm))
	console.log(`length ${norm}, ${name}: ${of}`)
	return of
}).join(' '))
const found = match.find(vector(same, 1), [vector(others.opposite, 1)])
console.log(`find among the opposite alone: index ${found.index}, similarity ${found.similarity}`)
process.exit(seen[0] === '1 1 1' && seen[1] === '1 0 0' && found.similarity === 1 ? 0 : 1)
JS
node run.mjs
