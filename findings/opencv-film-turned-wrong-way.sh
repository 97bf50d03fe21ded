#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# OpenCV 4.6.0 with FFmpeg 5.1.9 (Debian 12: 4.6.0+dfsg-12, 7:5.1.9-0+deb12u1), VideoCapture of an MP4 whose display
# matrix turns it by 90 degrees: it is turned the other way round, so a film of a telephone that was held upright stands on
# its head. A matrix that mirrors is taken for a turn by 180 degrees, and people hang from the ceiling; one that mirrors
# upside down is not applied at all.
# Expected: what ffmpeg itself shows, or the pictures as they lie in the file.
# Seen (the corners of a picture, red green / blue white in the file): by 90 degrees ffmpeg BR/WG, OpenCV GW/RB; mirrored
# GR/WB and WB/GR; upside-down mirrored BW/RG and RG/BW; by 180 degrees both WB/GR.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
packages='libopencv-videoio-dev=4.6.0+dfsg-12 ffmpeg=7:5.1.9-0+deb12u1'
for p in $packages; do
	[ "$(dpkg-query -W -f '${Package}=${Version}' "${p%%=*}" 2>/dev/null)" = "$p" ] || missing=1
done
if [ -n "${missing-}" ]; then
	cd "$dir"
	apt-get -qq -s --no-install-recommends install $packages >plan
	sed -n 's/^Inst \([^ ]*\) .*(\([^ ]*\) .*/\1=\2/p' plan | xargs apt-get -q download >apt.log 2>&1
	for package in *.deb; do dpkg -x "$package" "$dir/root"; done
	CPATH="$dir/root/usr/include/opencv4"
	PATH="$dir/root/usr/bin:$PATH"
	LIBRARY_PATH=$(find "$dir/root" -name '*.so*' -printf '%h\n' | sort -u | paste -sd:)
	LD_LIBRARY_PATH=$LIBRARY_PATH
	export CPATH PATH LIBRARY_PATH LD_LIBRARY_PATH
fi
cat >"$dir/first.cpp" <<'EOF_'
#include <cstdio>
#include <opencv2/videoio.hpp>

// Prints the first picture in BGR; its width alone on the standard error.
int main(int, char **file) {
	cv::VideoCapture film(file[1], cv::CAP_FFMPEG);
	cv::Mat picture;
	if (!film.read(picture) || !picture.isContinuous())
		return 1;
	std::fprintf(stderr, "%d", picture.cols);
	return std::fwrite(picture.data, picture.elemSize(), picture.total(), stdout) != picture.total();
}
EOF_
g++ -I/usr/include/opencv4 -o "$dir/first" "$dir/first.cpp" -lopencv_videoio -lopencv_core
cat >"$dir/run.py" <<'PYTHON'
import os, struct, subprocess, sys
os.chdir(sys.argv[1])
W, H = 160, 96

def run(*command, of=None):
    return subprocess.run(command, input=of, check=True, capture_output=True)

def corners(bgr, width):
    height = len(bgr) // width // 3
    at = [[bgr[3 * (y * width + x):][:3] for x in (width // 4, width * 3 // 4)] for y in (height // 4, height * 3 // 4)]
    names = {(0, 0, 1): 'R', (0, 1, 0): 'G', (1, 0, 0): 'B', (1, 1, 1): 'W'}
    return '/'.join(''.join(names[tuple(int(v > 127) for v in pixel)] for pixel in row) for row in at)

rows = [left * (W // 2) + right * (W // 2) for left, right in ((b'\0\0\xff', b'\0\xff\0'), (b'\xff\0\0', b'\xff' * 3))]
picture = rows[0] * (H // 2) + rows[1] * (H // 2)
run('ffmpeg', '-v', 'error', '-f', 'rawvideo', '-pix_fmt', 'bgr24', '-s', f'{W}x{H}', '-i', '-', '-pix_fmt', 'yuv420p',
    '-c:v', 'libx264', 'plain.mp4', of=picture * 5)
plain = open('plain.mp4', 'rb').read()
identity = struct.pack('>9i', 1 << 16, 0, 0, 0, 1 << 16, 0, 0, 0, 1 << 30)
place = plain.index(identity, plain.index(b'tkhd'))
wanted = {'as it lies': ((1, 0, 0, 1), 'RG/BW', 'RG/BW'), 'by 90 degrees': ((0, 1, -1, 0), 'BR/WG', 'GW/RB'),
          'by 180 degrees': ((-1, 0, 0, -1), 'WB/GR', 'WB/GR'), 'mirrored': ((-1, 0, 0, 1), 'GR/WB', 'WB/GR'),
          'mirrored upside down': ((1, 0, 0, -1), 'BW/RG', 'RG/BW')}
same = True
for name, ((a, b, c, d), by_ffmpeg, by_opencv) in wanted.items():
    matrix = struct.pack('>9i', a << 16, b << 16, 0, c << 16, d << 16, 0, 0, 0, 1 << 30)
    with open('film.mp4', 'wb') as film:
        film.write(plain[:place] + matrix + plain[place + 36:])
    width = H if a == 0 else W
    shown = run('ffmpeg', '-v', 'error', '-i', 'film.mp4', '-frames:v', '1', '-f', 'rawvideo', '-pix_fmt', 'bgr24', '-')
    read = run('./first', 'film.mp4')
    got = corners(shown.stdout, width), corners(read.stdout, int(read.stderr.split()[-1]))
    print(f'{name}: ffmpeg {got[0]}, OpenCV {got[1]}')
    same = same and got == (by_ffmpeg, by_opencv)
sys.exit(not same)
PYTHON
python3 "$dir/run.py" "$dir"
