#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# FFmpeg 5.1.9 (Debian 12: 7:5.1.9-0+deb12u1), motion JPEG over HTTP (multipart/x-mixed-replace): its demuxer mpjpeg gives
# no frame if the type of the parts is image/jpg, or image/jpeg with a parameter, or is missing. The demuxer mjpeg, named
# by hand, reads all of them from the same server.
# Expected: the boundary finds the parts, and the type of a part does not matter.
# Seen: frames of 12, by mpjpeg and mjpeg: image/jpeg 12 or 11 and 11 or more; the others 0 and 11 or more.
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
import http.server, subprocess, sys, threading
ffmpeg = 'ffmpeg'
N = 12
stream = subprocess.run([ffmpeg, '-v', 'error', '-f', 'lavfi', '-i', f'testsrc=size=160x120:rate=10', '-frames:v', str(N),
                         '-f', 'mjpeg', '-'], check=True, capture_output=True).stdout
pictures = [b'\xff\xd8' + p for p in stream.split(b'\xff\xd8')[1:]]
assert len(pictures) == N, len(pictures)
shapes = {'plain': b'Content-Type: image/jpeg\r\n', 'jpg': b'Content-Type: image/jpg\r\n',
          'parameter': b'Content-Type: image/jpeg; charset=binary\r\n', 'none': b''}

class Server(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header('Content-Type', 'multipart/x-mixed-replace; boundary=frame')
        self.end_headers()
        for p in pictures:
            self.wfile.write(b'--frame\r\n' + shapes[self.path[1:]] + b'Content-Length: %d\r\n\r\n' % len(p) + p + b'\r\n')
    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()

def frames(shape, *demuxer):
    out = subprocess.run([ffmpeg, '-v', 'error', *demuxer, '-i', f'http://127.0.0.1:{server.server_port}/{shape}',
                          '-vsync', '0', '-f', 'framemd5', '-'], capture_output=True, text=True, timeout=120).stdout
    return sum(not line.startswith('#') for line in out.splitlines())

ok = True
for shape in shapes:
    own, other = frames(shape), frames(shape, '-f', 'mjpeg')
    print(f'{shape}: {own} frames by mpjpeg, {other} by mjpeg')
    ok &= other >= N - 1 and (own >= N - 1 if shape == 'plain' else own == 0)
sys.exit(not ok)
EOF
python3 "$dir/run.py"
