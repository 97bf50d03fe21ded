#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A JPEG 2000 picture in sYCC, the colours of JPEG, as portraits of passports and of biometric records (ISO/IEC 19794-5
# allows JPEG 2000) can be, read by OpenJPEG 2.5.0, OpenCV 4.6.0, which uses it, FFmpeg 5.1.9 and Pillow 9.4.0, which uses
# it as well (Debian 12: 2.5.0-2+deb12u3, 4.6.0+dfsg-12, 7:5.1.9-0+deb12u1, 9.4.0-1.1+deb12u1). None complains.
# Expected: the colours that it was made of, by all four, but for 3 levels.
# Seen (a red of 200, 80, 40 and a white of 235): OpenJPEG is right. OpenCV takes the coefficients of analogue YUV: 183, 90,
# 30. FFmpeg takes the range for the limited one: white is 255. Pillow shows Y, Cb and Cr as red, green and blue: the white
# is pink, 235, 128, 128.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
packages='libopencv-imgcodecs-dev=4.6.0+dfsg-12 libopenjp2-tools=2.5.0-2+deb12u3 ffmpeg=7:5.1.9-0+deb12u1
	python3-pil=9.4.0-1.1+deb12u1'
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
	PYTHONPATH=$dir/root/usr/lib/python3/dist-packages
	export CPATH PATH LIBRARY_PATH LD_LIBRARY_PATH PYTHONPATH
fi
cat >"$dir/read.cpp" <<'EOF_'
#include <opencv2/imgcodecs.hpp>

int main(int, char **file) {
	return !cv::imwrite(file[2], cv::imread(file[1]));
}
EOF_
g++ -I/usr/include/opencv4 -o "$dir/read" "$dir/read.cpp" -lopencv_imgcodecs -lopencv_core
cat >"$dir/run.py" <<'PYTHON'
import os, subprocess, sys
from PIL import Image
os.chdir(sys.argv[1])
W, H = 64, 64
RED, WHITE = (200, 80, 40), (235, 235, 235)

def run(*command, of=None):
    subprocess.run(command, input=of, check=True, capture_output=True)

def full_range(r, g, b): # of JFIF and of sYCC
    y = .299 * r + .587 * g + .114 * b
    return round(y), round((b - y) / 1.772 + 128), round((r - y) / 1.402 + 128)

planes = b''.join(bytes([red] * (W // 2) + [white] * (W // 2)) * H
                  for red, white in zip(full_range(*RED), full_range(*WHITE)))
# FFmpeg's encoder takes the planes as they are and writes the number of sYCC, 18, into the box colr.
run('ffmpeg', '-v', 'error', '-f', 'rawvideo', '-pix_fmt', 'yuv444p', '-s', f'{W}x{H}', '-i', '-', '-c:v', 'jpeg2000',
    '-pred', '1', 'a.jp2', of=planes)
assert b'colr\1\0\0\0\0\0\x12' in open('a.jp2', 'rb').read()
run('opj_decompress', '-i', 'a.jp2', '-o', 'OpenJPEG.ppm')
run('./read', 'a.jp2', 'OpenCV.ppm')
run('ffmpeg', '-v', 'error', '-i', 'a.jp2', '-pix_fmt', 'rgb24', 'FFmpeg.ppm')
Image.open('a.jp2').convert('RGB').save('Pillow.ppm')

def near(a, b):
    return all(abs(v - w) <= 3 for v, w in zip(a, b))

same = True
wanted = {'OpenJPEG': (RED, WHITE), 'OpenCV': ((183, 90, 30), WHITE), 'FFmpeg': ((211, 75, 30), (255, 255, 255)),
          'Pillow': (full_range(*RED), full_range(*WHITE))}
for name, (red, white) in wanted.items():
    picture = Image.open(name + '.ppm')
    got = picture.getpixel((W // 4, H // 2)), picture.getpixel((3 * W // 4, H // 2))
    print(name, *got)
    same = same and near(got[0], red) and near(got[1], white)
sys.exit(not same)
PYTHON
/usr/bin/python3 "$dir/run.py" "$dir"
