#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Types what README and docs print on an empty disk with only Go: the demo, the packages and their demo, the library's
# program from an empty folder, each example as its comment says, and the quick tests. Nothing of this machine is there
# but Go, and a proxy with the module as a release would have it.
. /root/faceauth/packaging/inside/demo.sh

# docs/packages.md, to the first demo. It asks for a clone; a tree has no sudo.
sudo() { "$@"; }
apt install git
git clone -q /root/faceauth.git /root/clone
cd /root/clone
sed -n '/^## Build and install/,/faceauth demo$/s/^    //p' docs/packages.md >/tmp/commands
[ "$(wc -l </tmp/commands)" -eq 5 ] || stop "docs/packages.md has other commands: $(cat /tmp/commands)"
[ "$RELEASE" = bookworm ] || sed -i 's/ systemd / systemd-dev /' /tmp/commands
sed -i 's/apt-get install /apt-get install -y /' /tmp/commands
(. /tmp/commands) >/tmp/packages.log 2>&1 || { tail -n 30 /tmp/packages.log; stop 'the packages are not built as docs/packages.md says'; }
grep -F "$demo" /tmp/packages.log || stop "faceauth demo of the package ended otherwise: $(tail -n 1 /tmp/packages.log)"
say "the packages are built and installed: $(ls -sh bin/deb/*.deb | tr '\n' ' ')"

# docs/library.md, from an empty folder. The module is not released: a proxy on the disk has it.
proxy=/srv/proxy/github.com/faceauth/faceauth/@v
mkdir -p $proxy
echo v0.1.0 >$proxy/list
echo '{"Version":"v0.1.0","Time":"2026-11-26T00:00:00Z"}' >$proxy/v0.1.0.info
cp go.mod $proxy/v0.1.0.mod
git archive --format=zip --prefix=github.com/faceauth/faceauth@v0.1.0/ -o $proxy/v0.1.0.zip HEAD -- . ':!lab' ':!scripts/lint'
# A cache that is kept may have this version of an older commit.
modules=$(go env GOMODCACHE)
rm -rf "$modules/cache/download/github.com/faceauth" "$modules/github.com/faceauth"
GOPROXY="file:///srv/proxy,$(go env GOPROXY)"
export GOPROXY GONOSUMDB=github.com/faceauth/faceauth
cd /srv
sed -n '/^## Who is in this photograph/,/^    go run \.$/s/^    //p' /root/clone/docs/library.md >/tmp/commands
[ "$(wc -l </tmp/commands)" -eq 5 ] || stop "docs/library.md has other commands: $(cat /tmp/commands)"
sed -i 's/apt-get install /apt-get install -y /' /tmp/commands
sed '/^go get/,$d' /tmp/commands >/tmp/before
sed -n '/^go get/,$p' /tmp/commands >/tmp/after
. /tmp/before >/tmp/library.log 2>&1 || { cat /tmp/library.log; stop 'docs/library.md begins badly'; }
sed -n '/^```go$/,/^```$/p' /root/clone/docs/library.md | sed '1d; /^```$/,$d' >main.go
stills=/usr/share/faceauth/demo
cp $stills/s2/1.pgm alice.jpg
cp $stills/s2/5.pgm party.jpg
. /tmp/after >>/tmp/library.log 2>&1 || { cat /tmp/library.log; stop 'the program of docs/library.md does not run'; }
grep ' alice ' /tmp/library.log || { cat /tmp/library.log; stop 'the program of docs/library.md does not know alice'; }
say "the program of docs/library.md runs"

# The examples, as their comments say, with the films of the demo.
cd /root/clone
cp /root/faceauth/faceauth-demo/*.avi .
cp $stills/s1/1.pgm a.jpg
cp $stills/s1/2.pgm b.jpg
for example in door network visitors who; do
	sed -n 's|^//[[:space:]]*\(go run ./examples/.*\)|\1|p; s|^// .*: \(go run ./examples/.*\)$|\1|p' examples/$example/main.go >/tmp/commands
	[ -s /tmp/commands ] || stop "examples/$example says no command"
	sed -i 's/ 0$/ recording.avi/' /tmp/commands
	[ $example != who ] || cp /srv/who/*.jpg .
	. /tmp/commands >/tmp/example.log 2>&1 || { cat /tmp/example.log; stop "failed: $(cat /tmp/commands)"; }
	say "$(cat /tmp/commands): $(tail -n 1 /tmp/example.log)"
done

# Last, as it takes longest. Tests that need recordings or a booted system skip, as on any machine without them.
cd /root/faceauth
make test >/tmp/test.log 2>&1 || {
	grep -v '^ok\|no test files' /tmp/test.log | tail -n 60 >&2
	stop 'make test failed'
}
say "make test passed: $(grep -c '^ok' /tmp/test.log) packages"
