#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# OpenCV 4.6.0 (Debian 12: 4.6.0+dfsg-12), imdecode of JPEG: the EXIF orientation is applied only if EXIF is the first
# APP1 segment. After XMP, which is an APP1 as well, it is not seen, and the picture stays as it lies in the file.
# Expected: 32x64 pixels of a file of 64x32 that is to be turned by 90 degrees, wherever EXIF stands.
# Seen: EXIF first: 32x64; XMP, then EXIF: 64x32.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
version=4.6.0+dfsg-12
if [ "$(dpkg-query -W -f '${Version}' libopencv-imgcodecs-dev 2>/dev/null)" != $version ]; then
	cd "$dir"
	apt-cache depends --recurse --important libopencv-imgcodecs-dev=$version | grep '^[a-z]' | xargs apt-get -q download \
		"libopencv-imgcodecs-dev=$version" >apt.log
	for package in *.deb; do dpkg -x "$package" "$dir/root"; done
	CPATH="$dir/root/usr/include/opencv4"
	LIBRARY_PATH=$(find "$dir/root" -name '*.so*' -printf '%h\n' | sort -u | paste -sd:)
	LD_LIBRARY_PATH=$LIBRARY_PATH
	export CPATH LIBRARY_PATH LD_LIBRARY_PATH
fi
cat >"$dir/a.cpp" <<'EOF'
#include <cstdio>
#include <opencv2/imgcodecs.hpp>

using Bytes = std::vector<uchar>;

static void segment(Bytes &to, const std::string &content) {
	size_t n = content.size() + 2;
	to.insert(to.end(), {0xff, 0xe1, uchar(n >> 8), uchar(n)});
	to.insert(to.end(), content.begin(), content.end());
}

int main() {
	Bytes plain;
	cv::imencode(".jpg", cv::Mat(32, 64, CV_8UC3, cv::Scalar(90, 120, 150)), plain);
	const std::string exif("Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0", 32);
	const std::string xmp("http://ns.adobe.com/xap/1.0/\0<x:xmpmeta xmlns:x='adobe:ns:meta/'/>", 67);
	cv::Size got[2];
	for (int late = 0; late < 2; late++) {
		Bytes file = {0xff, 0xd8};
		if (late)
			segment(file, xmp);
		segment(file, exif);
		file.insert(file.end(), plain.begin() + 2, plain.end());
		got[late] = cv::imdecode(file, cv::IMREAD_COLOR).size();
		std::printf("%s: %dx%d\n", late ? "XMP, then EXIF" : "EXIF first", got[late].width, got[late].height);
	}
	return !(got[0] == cv::Size(32, 64) && got[1] == cv::Size(64, 32));
}
EOF
g++ -I/usr/include/opencv4 -o "$dir/a" "$dir/a.cpp" -lopencv_imgcodecs -lopencv_core
"$dir/a"
