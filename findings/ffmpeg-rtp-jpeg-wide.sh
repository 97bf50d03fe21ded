#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# FFmpeg 5.1.9 (Debian 12: 7:5.1.9-0+deb12u1), JPEG over RTP: RFC 2435 has 8 bits for the width, in steps of 8 pixels, so
# 2,040 at most. Of a wider picture, as of any camera of four megapixels, FFmpeg sends what is left of the number modulo
# 2,048: a receiver sees a strip of 256x1296 of a picture of 2304x1296, and nothing at all of 2,048 pixels, where 0 is left.
# Expected: an error, or the width 0 with the real one in the SDP (x-dimensions), as GStreamer 1.22 has it and understands.
# Seen (width of the pictures, width in the packets): 1920 1920, 2040 2040, 2048 0, 2304 256, 2688 640; exit code 0, no
# message.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
version=7:5.1.9-0+deb12u1
if [ "$(dpkg-query -W -f '${Version}' ffmpeg 2>/dev/null)" != $version ]; then
	cd "$dir"
	apt-get -qq -s --no-install-recommends install "ffmpeg=$version" >plan
	sed -n 's/^Inst \([^ ]*\) .*(\([^ ]*\) .*/\1=\2/p' plan | xargs apt-get -q download >apt.log 2>&1
	for package in *.deb; do dpkg -x "$package" "$dir/root"; done
	PATH="$dir/root/usr/bin:$PATH"
	LD_LIBRARY_PATH=$(find "$dir/root" -name '*.so*' -printf '%h\n' | sort -u | paste -sd:)
	export PATH LD_LIBRARY_PATH
fi
cat >"$dir/run.py" <<'PYTHON'
import socket, subprocess, sys

# The widths in the first packets of pictures that FFmpeg sends (RFC 2435, section 3.1), its exit code and what it says.
def sent(width):
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind(('127.0.0.1', 0))
    receiver.settimeout(60)
    to = f'rtp://127.0.0.1:{receiver.getsockname()[1]}'
    ffmpeg = subprocess.run(['ffmpeg', '-v', 'error', '-f', 'lavfi', '-i', f'color=gray:size={width}x1296', '-frames:v', '1',
                             '-c:v', 'mjpeg', '-huffman', 'default', '-pix_fmt', 'yuvj420p', '-f', 'rtp', to],
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    while True: # a report of RTCP has another port
        packet = receiver.recv(1 << 16)
        if packet[13:16] == b'\0\0\0': # the first fragment
            return packet[18] * 8, ffmpeg.returncode, ffmpeg.stderr

seen = {width: sent(width) for width in (1920, 2040, 2048, 2304, 2688)}
for width, (told, code, words) in seen.items():
    print(f'{width} pixels: {told} in the packets, exit code {code} {words.decode()}')
sys.exit(seen != {width: (told, 0, b'') for width, told in
                  {1920: 1920, 2040: 2040, 2048: 0, 2304: 256, 2688: 640}.items()})
PYTHON
python3 "$dir/run.py"
