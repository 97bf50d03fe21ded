#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# exifr 7.1.3 (npm), names of faces in XMP (mwg-rs:RegionList, as digiKam and Lightroom write them): the list is an array
# if two faces are named in a photograph, and the face itself if it is one. Names are guessed at: 007 becomes the number 7,
# 1e5 100000, and somebody who is called True becomes true.
# Expected: an array of one face; a name is text, as ExifReader 4.46.0 has both.
# Seen: Anna and Bob: an array; Anna alone: an object; 007, 1e5, True: 7, 100000, true.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >package-lock.json <<'JSON'
{"name": "finding", "lockfileVersion": 3, "packages": {
  "": {"name": "finding", "dependencies": {"exifr": "7.1.3"}},
  "node_modules/exifr": {"version": "7.1.3",
    "integrity": "sha512-g/aje2noHivrRSLbAUtBPWFbxKdKhgj/xr1vATDdUXPOFYJlQ62Ft0oy+72V6XLIpDJfHs6gXLbBLAolqOXYRw=="}}}
JSON
echo '{"name": "finding", "dependencies": {"exifr": "7.1.3"}}' >package.json
npm ci --silent --ignore-scripts --no-audit --no-fund
cat >run.mjs <<'JS'
import exifr from 'exifr'

// A JPEG of nothing but XMP, with a named face for each name.
const photograph = names => {
	const faces = names.map(name => '<rdf:li rdf:parseType="Resource"><mwg-rs:Name>' + name + '</mwg-rs:Name>' +
		'<mwg-rs:Type>Face</mwg-rs:Type><mwg-rs:Area stArea:x="0.3" stArea:y="0.3" stArea:w="0.1" stArea:h="0.2" ' +
		'stArea:unit="normalized"/></rdf:li>').join('')
	const xmp = Buffer.from('http://ns.adobe.com/xap/1.0/\0<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf=' +
		'"http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about="" xmlns:mwg-rs=' +
		'"http://www.metadataworkinggroup.com/schemas/regions/" xmlns:stArea="http://ns.adobe.com/xmp/sType/Area#">' +
		'<mwg-rs:Regions rdf:parseType="Resource"><mwg-rs:RegionList><rdf:Bag>' + faces +
		'</rdf:Bag></mwg-rs:RegionList></mwg-rs:Regions></rdf:Description></rdf:RDF></x:xmpmeta>')
	const length = xmp.length + 2
	return Buffer.concat([Buffer.from([0xff, 0xd8, 0xff, 0xe1, length >> 8, length & 255]), xmp, Buffer.from([0xff, 0xd9])])
}
const seen = []
for (const names of [['Anna', 'Bob'], ['Anna'], ['007', '1e5', 'True']]) {
	const list = (await exifr.parse(photograph(names), { xmp: true, multiSegment: true, mergeOutput: false }))['mwg-rs']
		.Regions.RegionList
	const read = JSON.stringify(Array.isArray(list) ? list.map(face => face.Name) : { Name: list.Name })
	console.log(names.join(', ') + ': ' + read)
	seen.push(read)
}
process.exit(seen.join() === '["Anna","Bob"],{"Name":"Anna"},[7,100000,true]' ? 0 : 1)
JS
node run.mjs
