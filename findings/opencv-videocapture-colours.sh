#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# OpenCV 4.6.0 (Debian 12: 4.6.0+dfsg-12), VideoCapture by FFmpeg: the matrix and the range of a stream are not used. VP9
# in BT.709 with full range is converted as BT.601 from 16 to 235, and a face gets other colours than in a photograph or in
# FFmpeg's own program (5.1.9, 7:5.1.9-0+deb12u1), which uses the same libraries.
# Expected: the colours of the stream, within rounding.
# Seen (blue, green, red of a film of 30, 30, 220): BT.601 limited within 3; BT.709 full 18, 0, 212; by ffmpeg within 4.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
packages='ffmpeg=7:5.1.9-0+deb12u1 libopencv-videoio-dev=4.6.0+dfsg-12'
for p in $packages; do
	[ "$(dpkg-query -W -f '${Package}=${Version}' "${p%%=*}" 2>/dev/null)" = "$p" ] || missing=1
done
if [ -n "${missing-}" ]; then
	cd "$dir"
	for p in $packages; do
		apt-cache depends --recurse --important "$p" | grep '^[a-z]' | xargs apt-get -q download "$p" >apt.log
	done
	for package in *.deb; do dpkg -x "$package" "$dir/root"; done
	PATH="$dir/root/usr/bin:$PATH"
	CPATH="$dir/root/usr/include/opencv4"
	LIBRARY_PATH=$(find "$dir/root" -name '*.so*' -printf '%h\n' | sort -u | paste -sd:)
	LD_LIBRARY_PATH=$LIBRARY_PATH
	export PATH CPATH LIBRARY_PATH LD_LIBRARY_PATH
fi
cat >"$dir/a.cpp" <<'CPP'
#include <cstdio>
#include <opencv2/videoio.hpp>

int main(int, char **argv) {
	cv::Mat frame;
	if (!cv::VideoCapture(argv[1], cv::CAP_FFMPEG).read(frame))
		return 1;
	cv::Vec3b p = frame.at<cv::Vec3b>(frame.rows / 2, frame.cols / 2);
	std::printf("%d %d %d\n", p[0], p[1], p[2]);
}
CPP
g++ -I/usr/include/opencv4 -o "$dir/a" "$dir/a.cpp" -lopencv_videoio -lopencv_core
cat >"$dir/run.py" <<'PYTHON'
import subprocess, sys

def run(*command):
    return subprocess.run(command, check=True, capture_output=True, timeout=300).stdout

def apart(colour):
    return max(abs(a - b) for a, b in zip(colour, (30, 30, 220)))

dir, ok = sys.argv[1], True
for matrix, name, levels in ('bt601', 'smpte170m', 'tv'), ('bt709', 'bt709', 'pc'):
    film = f'{dir}/{matrix}.webm'
    run('ffmpeg', '-v', 'error', '-f', 'lavfi', '-i', 'color=c=0xdc1e1e:size=320x240:rate=10', '-frames:v', '5', '-vf',
        f'scale=out_color_matrix={matrix}:out_range={levels},format=yuv420p', '-c:v', 'libvpx-vp9', '-deadline',
        'realtime', '-colorspace', name, '-color_range', levels, film)
    frame = run('ffmpeg', '-v', 'error', '-i', film, '-frames:v', '1', '-f', 'rawvideo', '-pix_fmt', 'bgr24', '-')
    own, other = tuple(frame[115680:115683]), tuple(map(int, run(f'{dir}/a', film).split()))
    print(f'{matrix}, {levels}: ffmpeg {own}, VideoCapture {other}')
    ok &= apart(own) <= 4 and (apart(other) <= 3 if levels == 'tv' else apart(other) >= 20)
sys.exit(not ok)
PYTHON
python3 "$dir/run.py" "$dir"
