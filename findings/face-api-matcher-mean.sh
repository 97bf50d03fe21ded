#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# face-api 1.7.15 (npm: @vladmandic/face-api), FaceMatcher with several descriptors of a person: a face is compared with
# the mean of its distances to all of them, and not with the nearest. Another look of somebody, enrolled so that they are
# recognised with glasses too, moves them away from every face: a picture that was itself enrolled becomes somebody
# else's.
# Expected: one more enrolled look makes nobody harder to recognise; the enrolled picture is its person at distance 0.
# Seen: with one look each, ann's picture is ann (0); with ann's second look, it is bob (0.5), and without bob, unknown.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >package-lock.json <<'JSON'
{"name": "finding", "lockfileVersion": 3, "packages": {
  "": {"name": "finding", "dependencies": {"@vladmandic/face-api": "1.7.15"}},
  "node_modules/@vladmandic/face-api": {"version": "1.7.15",
    "integrity": "sha512-WDMmK3CfNLo8jylWqMoQgf4nIst3M0fzx1dnac96wv/dvMTN4DxC/Pq1DGtduDk1lktCamQ3MIDXFnvrdHTXDw=="}}}
JSON
echo '{"name": "finding", "dependencies": {"@vladmandic/face-api": "1.7.15"}}' >package.json
npm ci --silent --ignore-scripts --no-audit --no-fund
cat >run.mjs <<'JS'
// The file for browsers holds all that it needs; it asks for Node's modules only where it sees Node.
Object.defineProperty(process, 'versions', { value: {} })
const { FaceMatcher, LabeledFaceDescriptors } = await import('./node_modules/@vladmandic/face-api/dist/face-api.esm.js')
const at = x => Float32Array.from({ length: 128 }, (_, i) => i ? 0 : x) // descriptors on a line
const person = (name, ...looks) => new LabeledFaceDescriptors(name, looks.map(at))
const rows = { 'one look each': [person('ann', 0), person('bob', 0.5)],
	'two looks of ann': [person('ann', 0, 1.5), person('bob', 0.5)],
	'ann alone': [person('ann', 0, 1.5)] }
const seen = Object.entries(rows).map(([name, people]) => {
	const best = new FaceMatcher(people).findBestMatch(at(0)).toString()
	console.log(`${name}: the first picture of ann is ${best}`)
	return best
})
process.exit(seen.join() === 'ann (0),bob (0.5),unknown (0.75)' ? 0 : 1)
JS
node run.mjs
