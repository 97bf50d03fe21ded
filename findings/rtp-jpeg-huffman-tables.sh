#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# JPEG over RTP (RFC 2435) sends no Huffman tables: a receiver puts in the usual ones. What a camera, or a program that
# stands for one, sends of a picture with tables of its own, as encoders that optimise write:
# FFmpeg 5.1.9 (Debian 12: 7:5.1.9-0+deb12u1) leaves each frame out, ends with 0, and its own encoder writes such tables
# unless -huffman default is given. GStreamer 1.22.0 (1.22.0-5+deb12u4) sends the frames, which nobody can decode then.
# Expected: FFmpeg's defaults work together, and a picture that cannot be sent is recoded or is an error.
# Seen: FFmpeg: no packet, exit code 0; with -huffman default 25 frames of 25. GStreamer: exit code 0, and what its own
# receiver puts together is refused by djpeg, or more than 20 levels off; with the usual tables it is the same picture.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
packages='ffmpeg=7:5.1.9-0+deb12u1 gstreamer1.0-tools=1.22.0-2+deb12u1 gstreamer1.0-plugins-good=1.22.0-5+deb12u4
	gstreamer1.0-plugins-bad=1.22.0-4+deb12u8 libjpeg-turbo-progs=1:2.1.5-2'
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
	GST_PLUGIN_PATH=$(find "$dir/root" /usr/lib -type d -name gstreamer-1.0 | paste -sd:)
	export PATH LD_LIBRARY_PATH GST_PLUGIN_PATH
fi
cat >"$dir/run.py" <<'PYTHON'
import os, socket, subprocess, sys, threading
os.chdir(sys.argv[1])

def frames(*options):
    """Returns the frames that FFmpeg sends of 25, by the marks at their ends, and its exit code."""
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind(('127.0.0.1', 0))
    ends = []

    def receive():
        packet = receiver.recv(1 << 16)
        while packet != b'end':
            ends.append(packet[1] >> 7)
            packet = receiver.recv(1 << 16)

    thread = threading.Thread(target=receive)
    thread.start()
    port = receiver.getsockname()[1]
    done = subprocess.run(['ffmpeg', '-v', 'quiet', '-f', 'lavfi', '-i', 'testsrc=size=160x96:rate=25', '-t', '1',
                           '-pix_fmt', 'yuvj420p', '-c:v', 'mjpeg', *options, '-f', 'rtp', f'rtp://127.0.0.1:{port}'],
                          stdout=subprocess.DEVNULL)
    receiver.sendto(b'end', ('127.0.0.1', port))
    thread.join()
    return sum(ends), done.returncode

def by_gstreamer(name):
    """Returns the exit code, and the mean difference that the way through RTP makes to the picture, if it is one still."""
    done = subprocess.run(['gst-launch-1.0', '-q', 'filesrc', f'location={name}', 'blocksize=1000000', '!', 'jpegparse',
                           '!', 'rtpjpegpay', '!', 'rtpjpegdepay', '!', 'filesink', 'location=got.jpg'], capture_output=True)
    sent, got = (subprocess.run(['djpeg', '-pnm', f], capture_output=True).stdout for f in (name, 'got.jpg'))
    if len(sent) != len(got):
        return done.returncode, None
    return done.returncode, sum(abs(a - b) for a, b in zip(sent, got)) / len(sent)

ffmpeg = frames(), frames('-huffman', 'default')
print('FFmpeg: %d frames, exit code %d; with -huffman default %d, exit code %d' % (*ffmpeg[0], *ffmpeg[1]))
picture = b'P6 160 96 255\n' + bytes((x * x // 99 + y * c) % 256 for y in range(96) for x in range(160) for c in (1, 2, 3))
for name, option in ('usual.jpg', ()), ('optimal.jpg', ('-optimize',)):
    file = subprocess.run(['cjpeg', '-quality', '90', *option], input=picture, check=True, capture_output=True).stdout
    with open(name, 'wb') as f:
        f.write(file)
gstreamer = by_gstreamer('usual.jpg'), by_gstreamer('optimal.jpg')
print('GStreamer, exit code and difference: usual tables', *gstreamer[0], 'optimal tables', *gstreamer[1])
code, off = gstreamer[1]
sys.exit(not (ffmpeg == ((0, 0), (25, 0)) and gstreamer[0] == (0, 0) and code == 0 and (off is None or off > 20)))
PYTHON
python3 "$dir/run.py" "$dir"
