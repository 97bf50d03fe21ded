#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# OpenCV 4.6.0 (Debian 12: 4.6.0+dfsg-12), estimateAffinePartial2D with its defaults, as much code uses it to lay the eyes,
# the nose and the corners of a mouth on the five points of ArcFace's crop of 112 pixels. It is RANSAC with 3 pixels: as a
# head turns, the nose and then a corner of the mouth are left out as outliers, one at a time, and the crop jumps.
# Expected: the similarity of least squares over the five points, which moves with them.
# Seen: a nose that moves sideways by 0.1 pixels a step, a corner of the mouth by half of it, to 12 pixels: in its largest
# step, a corner of the crop moves by more than 2 pixels, by least squares by less than 0.1; at the end, it leaves two of
# five out.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
packages='libopencv-calib3d-dev=4.6.0+dfsg-12'
for p in $packages; do
	[ "$(dpkg-query -W -f '${Package}=${Version}' "${p%%=*}" 2>/dev/null)" = "$p" ] || missing=1
done
if [ -n "${missing-}" ]; then
	cd "$dir"
	apt-get -qq -s --no-install-recommends install $packages >plan
	sed -n 's/^Inst \([^ ]*\) .*(\([^ ]*\) .*/\1=\2/p' plan | xargs apt-get -q download >apt.log 2>&1
	for package in *.deb; do dpkg -x "$package" "$dir/root"; done
	CPATH="$dir/root/usr/include/opencv4"
	LIBRARY_PATH=$(find "$dir/root" -name '*.so*' -printf '%h\n' | sort -u | paste -sd:)
	LD_LIBRARY_PATH=$LIBRARY_PATH
	export CPATH LIBRARY_PATH LD_LIBRARY_PATH
fi
cat >"$dir/a.cpp" <<'EOF_'
#include <complex>
#include <cstdio>
#include <opencv2/calib3d.hpp>

using Points = std::vector<cv::Point2f>;
using Complex = std::complex<double>;

// Where the similarity of least squares lays p: points of a plane are complex numbers, and it is a*z + b.
static Complex squares(const Points &from, const Points &to, Complex p) {
	Complex f, t, above;
	double below = 0;
	for (size_t i = 0; i < from.size(); i++) {
		f += Complex(from[i].x, from[i].y) / double(from.size());
		t += Complex(to[i].x, to[i].y) / double(to.size());
	}
	for (size_t i = 0; i < from.size(); i++) {
		Complex z = Complex(from[i].x, from[i].y) - f;
		above += std::conj(z) * (Complex(to[i].x, to[i].y) - t);
		below += std::norm(z);
	}
	return above / below * (p - f) + t;
}

int main() {
	const Points crop = {{38.2946f, 51.6963f}, {73.5318f, 51.5014f}, {56.0252f, 71.7366f}, {41.5493f, 92.3655f},
		{70.7299f, 92.2041f}};
	const Complex corner(224, 224);
	Complex before[2];
	double largest[2] = {};
	int kept = 0;
	for (int step = 0; step <= 120; step++) {
		Points face;
		for (auto p : crop)
			face.push_back(2 * p);
		face[2].x += .2f * step; // 0.1 pixels of the crop
		face[3].x += .1f * step;
		std::vector<uchar> inside;
		cv::Mat m = cv::estimateAffinePartial2D(face, crop, inside);
		kept = cv::countNonZero(inside);
		auto row = [&](int i) {
			return m.at<double>(i, 0) * corner.real() + m.at<double>(i, 1) * corner.imag() + m.at<double>(i, 2);
		};
		Complex now[2] = {{row(0), row(1)}, squares(face, crop, corner)};
		for (int i = 0; i < 2 && step > 0; i++)
			largest[i] = std::max(largest[i], std::abs(now[i] - before[i]));
		before[0] = now[0];
		before[1] = now[1];
	}
	std::printf("largest step of the crop's corner: %.2f pixels, least squares %.2f; %d of 5 points kept; "
		"at the end %.1f pixels apart\n", largest[0], largest[1], kept, std::abs(before[0] - before[1]));
	return !(largest[0] > 2 && largest[1] < .1 && kept == 3);
}
EOF_
g++ -I/usr/include/opencv4 -o "$dir/a" "$dir/a.cpp" -lopencv_calib3d -lopencv_core
"$dir/a"
