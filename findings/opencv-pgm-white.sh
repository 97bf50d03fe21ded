#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# OpenCV 4.6.0 (Debian 12: 4.6.0+dfsg-12), imdecode of PGM: the header says which number is white, 1023 for the 10 bits of
# an infrared camera. OpenCV does not use it: 16 bits are divided by 256, so that such a picture is black for every
# detector, and 8 bits stay as they are. Only a plain (written out) file of 8 bits is scaled, so the same picture has other
# greys as P2 and as P5. A plain file that ends with its last number, without a line's end, is not read at all.
# Expected: white is 255 in a picture of 8 bits, in all of them, as in FFmpeg and Netpbm.
# Seen (white as read, binary and plain): of 255 255 and 255, of 100 100 and 255, of 1023 3 and 3, of 4095 15 and 15.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
version=4.6.0+dfsg-12
if [ "$(dpkg-query -W -f '${Version}' libopencv-imgcodecs-dev 2>/dev/null)" != $version ]; then
	cd "$dir"
	apt-get -qq -s --no-install-recommends install "libopencv-imgcodecs-dev=$version" >plan
	sed -n 's/^Inst \([^ ]*\) .*(\([^ ]*\) .*/\1=\2/p' plan | xargs apt-get -q download >apt.log 2>&1
	for package in *.deb; do dpkg -x "$package" "$dir/root"; done
	CPATH="$dir/root/usr/include/opencv4"
	LIBRARY_PATH=$(find "$dir/root" -name '*.so*' -printf '%h\n' | sort -u | paste -sd:)
	LD_LIBRARY_PATH=$LIBRARY_PATH
	export CPATH LIBRARY_PATH LD_LIBRARY_PATH
fi
cat >"$dir/a.cpp" <<'EOF'
#include <cstdio>
#include <opencv2/imgcodecs.hpp>

// The grey of a picture of 4x4 pixels, all of them white; -1 if it is not read.
static int grey(const std::string &file) {
	cv::Mat m = cv::imdecode(std::vector<uchar>(file.begin(), file.end()), cv::IMREAD_GRAYSCALE);
	return m.empty() ? -1 : m.at<uchar>(0, 0);
}

int main() {
	std::string seen;
	for (int white : {255, 100, 1023, 4095}) {
		std::string head = " 4 4 " + std::to_string(white), binary = "P5" + head + "\n", plain = "P2" + head;
		for (int i = 0; i < 16; i++) {
			if (white > 255)
				binary += char(white >> 8);
			binary += char(white);
			plain += ' ' + std::to_string(white);
		}
		char line[99];
		std::snprintf(line, sizeof line, "white is %d: binary %d, plain %d, without a line's end %d\n", white, grey(binary),
			grey(plain + "\n"), grey(plain));
		seen += line;
	}
	std::fputs(seen.c_str(), stdout);
	return seen != "white is 255: binary 255, plain 255, without a line's end -1\n"
		"white is 100: binary 100, plain 255, without a line's end -1\n"
		"white is 1023: binary 3, plain 3, without a line's end -1\n"
		"white is 4095: binary 15, plain 15, without a line's end -1\n";
}
EOF
g++ -I/usr/include/opencv4 -o "$dir/a" "$dir/a.cpp" -lopencv_imgcodecs -lopencv_core
"$dir/a" 2>/dev/null
