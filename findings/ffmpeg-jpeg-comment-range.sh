#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# FFmpeg 5.1.9 beside libjpeg-turbo 2.1.5 (Debian 12: 7:5.1.9-0+deb12u1, 1:2.1.5-2): a comment "CS=ITU601" in a JPEG, which
# FFmpeg's own encoder writes for limited range, makes its decoder take 16 for black and 235 for white. libjpeg reads no
# comments, so the same file is flat in the one or has lost its shadows and lights in the other. OpenCV meets both: imread
# is libjpeg, VideoCapture is FFmpeg.
# Expected: the same greys by both, to 1 level or 2; JFIF knows the full range alone.
# Seen, of a wedge from 0 to 255, the columns of 0 and of 255: 1 and 1 by both; with the comment 17 and 21 by FFmpeg in a
# JPEG of three components, and still 1 and 1 by libjpeg, and by FFmpeg in a JPEG of grey alone.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
packages='ffmpeg=7:5.1.9-0+deb12u1 libjpeg-turbo-progs=1:2.1.5-2'
for p in $packages; do
	[ "$(dpkg-query -W -f '${Package}=${Version}' "${p%%=*}" 2>/dev/null)" = "$p" ] || missing=1
done
if [ -n "${missing-}" ]; then
	cd "$dir"
	apt-get -qq -s --no-install-recommends install $packages >plan
	sed -n 's/^Inst \([^ ]*\) .*(\([^ ]*\) .*/\1=\2/p' plan | xargs apt-get -q download >apt.log 2>&1
	for package in *.deb; do dpkg -x "$package" "$dir/root"; done
	PATH="$dir/root/usr/bin:$PATH"
	LD_LIBRARY_PATH=$(find "$dir/root" -name '*.so*' -printf '%h\n' | sort -u | paste -sd:)
	export PATH LD_LIBRARY_PATH
fi
cat >"$dir/run.py" <<'PYTHON'
import os, subprocess, sys
os.chdir(sys.argv[1])

def run(*command, of=None):
    return subprocess.run(command, input=of, check=True, capture_output=True).stdout

wedge = bytes(range(256)) * 64
plain = run('cjpeg', '-quality', '100', '-grayscale', of=b'P5 256 64 255\n' + wedge)
colour = run('cjpeg', '-quality', '100', of=b'P6 256 64 255\n' + bytes(v for v in wedge for _ in range(3)))
text = b'CS=ITU601'
same = True
for name, file in ('colour', colour), ('grey', plain):
    for comment in False, True:
        of = file if not comment else file[:2] + b'\xff\xfe' + bytes([0, 2 + len(text)]) + text + file[2:]
        by_libjpeg = run('djpeg', '-pnm', '-grayscale', of=of)[-len(wedge):]
        by_ffmpeg = run('ffmpeg', '-v', 'error', '-f', 'mjpeg', '-i', '-', '-pix_fmt', 'rgb24', '-f', 'rawvideo', '-',
                        of=of)[::3]
        ends = [tuple(row.count(v) for v in (0, 255)) for row in (by_ffmpeg[:256], by_libjpeg[:256])]
        print(f'{name}, {"with" if comment else "no"} comment: black and white by FFmpeg {ends[0]}, by libjpeg {ends[1]}')
        cut = min(ends[0]) >= 10
        same = same and cut == (comment and name == 'colour') and max(ends[1]) <= 2
sys.exit(not same)
PYTHON
python3 "$dir/run.py" "$dir"
