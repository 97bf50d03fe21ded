#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# FFmpeg 5.1.9 (Debian 12: 7:5.1.9-0+deb12u1), RTSP: of several WWW-Authenticate: Digest headers it keeps the last one, and
# it knows MD5 alone. A camera that offers MD5 and then SHA-256 gets no answer at all; the other order works. Basic beside
# SHA-256 is not used either, in both orders.
# Expected: the offer is answered that the client knows (RFC 7616, section 3.7, wants the strongest that it supports).
# Seen: Authorization sent for "MD5", "SHA-256, MD5", "Basic"; none for "MD5, SHA-256", "Basic, SHA-256", "SHA-256, Basic".
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
import socketserver, subprocess, sys, threading
MD5, SHA, BASIC = 'Digest realm="cam", nonce="abc"', 'Digest realm="cam", nonce="abc", algorithm=SHA-256', 'Basic realm="cam"'
cases = [('MD5', [MD5], True), ('SHA-256, MD5', [SHA, MD5], True), ('Basic', [BASIC], True),
         ('MD5, SHA-256', [MD5, SHA], False), ('Basic, SHA-256', [BASIC, SHA], False), ('SHA-256, Basic', [SHA, BASIC], False)]
offers, answered = [], []

class Camera(socketserver.StreamRequestHandler):
    def handle(self):
        lines = []
        for line in self.rfile:
            if line.strip():
                lines.append(line.decode().strip())
                continue
            answered.extend(l for l in lines if l.lower().startswith('authorization:'))
            number = next(l for l in lines if l.lower().startswith('cseq:'))
            lines = []
            head = ['RTSP/1.0 401 Unauthorized', number] + ['WWW-Authenticate: ' + o for o in offers]
            self.wfile.write(('\r\n'.join(head) + '\r\n\r\n').encode())

server = socketserver.ThreadingTCPServer(('127.0.0.1', 0), Camera)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
ok = True
for name, offered, want in cases:
    offers[:], answered[:] = offered, []
    subprocess.run(['ffmpeg', '-v', 'quiet', '-rtsp_transport', 'tcp', '-i',
                    f'rtsp://me:made-up@127.0.0.1:{server.server_address[1]}/1', '-f', 'null', '-'], timeout=120)
    print(f'{name}: {"answered" if answered else "no answer"}')
    ok &= bool(answered) == want
sys.exit(not ok)
EOF
python3 "$dir/run.py"
