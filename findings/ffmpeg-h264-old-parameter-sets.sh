#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# FFmpeg 5.1.9 (Debian 12: 7:5.1.9-0+deb12u1), H.264: pictures of 640x480 that follow a stream of 320x240 without parameter
# sets of their own, as a relay hands them on whose camera came back and put its sets into the SDP alone, are decoded with
# the old sets: every one gives a frame of 320x240, and the program ends with 0.
# Expected: the pictures cannot be decoded, or an error, or a short output.
# Seen: more than 90 of 100 such pictures are frames of the old size; exit code 0.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
version=7:5.1.9-0+deb12u1
if [ "$(dpkg-query -W -f '${Version}' ffmpeg 2>/dev/null)" != $version ]; then
	cd "$dir"
	apt-cache depends --recurse --important ffmpeg=$version | grep '^[a-z]' | xargs apt-get -q download "ffmpeg=$version" >apt.log
	for package in *.deb; do dpkg -x "$package" "$dir/root"; done
	PATH="$dir/root/usr/bin:$PATH"
	LD_LIBRARY_PATH=$(find "$dir/root" -name '*.so*' -printf '%h\n' | sort -u | paste -sd:)
	export PATH LD_LIBRARY_PATH
fi
cat >"$dir/run.py" <<'EOF'
import subprocess, sys
ffmpeg = 'ffmpeg'

def film(size, n):
    return subprocess.run([ffmpeg, '-v', 'error', '-f', 'lavfi', '-i', f'testsrc2=size={size}:rate=25', '-frames:v', str(n),
                           '-c:v', 'libx264', '-pix_fmt', 'yuv420p', '-bf', '0', '-threads', '1', '-f', 'h264', '-'],
                          check=True, capture_output=True).stdout

before, after = film('320x240', 50), film('640x480', 100)
units = after.split(b'\0\0\1')[1:]
bare = b''.join(b'\0\0\1' + u for u in units if u[0] & 31 not in (7, 8))
out = subprocess.run([ffmpeg, '-v', 'error', '-f', 'h264', '-i', '-', '-fps_mode', 'passthrough', '-f', 'rawvideo', '-pix_fmt',
                      'gray', '-'], input=before + bare, capture_output=True)
frames = len(out.stdout) / (320 * 240)
print(f'exit code {out.returncode}, {frames:g} frames of 320x240 of 50 such pictures and 100 of 640x480')
sys.exit(not (out.returncode == 0 and frames > 140))
EOF
python3 "$dir/run.py"
