#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# OpenCV 4.6.0 (Debian 12: 4.6.0+dfsg-12), imdecode with IMREAD_REDUCED_COLOR_8: a JPEG of 201 pixels becomes 26 pixels
# wide, in which each pixel stands for 8 and the last one for 1. A place found there lies at 8 times its coordinate, and
# not at the ratio of the widths, 201/26 = 7.73: at the right edge that is 7 pixels off.
# Expected: the small picture is the large one, scaled to the new size.
# Seen: an edge at 160 of 201 is at 20.0 of 26, 8 times less; by the ratio of the widths it would be at 20.7.
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
#include <cmath>
#include <cstdio>
#include <opencv2/imgcodecs.hpp>

int main() {
	const int width = 201, edge = 160;
	cv::Mat picture(80, width, CV_8UC3, cv::Scalar(0, 0, 0));
	picture(cv::Rect(0, 0, edge, 80)).setTo(cv::Scalar(255, 255, 255));
	std::vector<uchar> file;
	cv::imencode(".jpg", picture, file, {cv::IMWRITE_JPEG_QUALITY, 100});
	cv::Mat small = cv::imdecode(file, cv::IMREAD_REDUCED_COLOR_8);
	double at = 0; // where white ends, to a part of a pixel
	for (int x = 0; x < small.cols; x++)
		at += small.at<cv::Vec3b>(5, x)[0] / 255.;
	std::printf("%d pixels, the edge at %.2f; %.2f by 8, %.2f by widths\n", small.cols, at, edge / 8.,
		double(edge) * small.cols / width);
	return !(small.cols == 26 && std::fabs(at - edge / 8.) < .1);
}
EOF
g++ -I/usr/include/opencv4 -o "$dir/a" "$dir/a.cpp" -lopencv_imgcodecs -lopencv_core
"$dir/a"
