#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the lines of the Dockerfile without docker: the first stage in this tree, into /out, or with packages of this
# release there the second one, and then the office as compose.yaml runs it, but with a recording as its camera. The
# image golang is here the Go of the tree.
. /root/faceauth/packaging/inside/common.sh

YUNET=no # it is in no registry of packages, which is all that a tree may need
stage=1
! ls /out/faceauth_*"+${release}_"*.deb >/dev/null 2>&1 || stage=2
# Lines that end with \ are joined, and comments and mounts left out.
sed -e '/^#/d' -e ':a' -e '/\\$/{N;s/\\\n//;ba' -e '}' /root/faceauth/packaging/container/Dockerfile |
	sed 's/--mount=[^ ]* *//g' >/tmp/lines
at=0 user='' home=''
set -a # arguments are variables of the commands
while read -r instruction rest; do
	case $instruction in
	FROM) at=$((at + 1)) ;;
	ARG) case $rest in *=*) eval "${rest%%=*}=\${${rest%%=*}:-${rest#*=}}" ;; esac ;;
	esac
	[ "$at" = "$stage" ] || continue
	case $instruction in
	RUN) say "RUN $rest" && quietly sh -ec "$rest" ;;
	WORKDIR) mkdir -p "$rest" && cd "$rest" && home=$rest ;;
	COPY) git clone -q /root/faceauth.git . ;;
	USER) user=$rest ;;
	HEALTHCHECK) check=$(printf '%s' "$rest" | sed 's/.*CMD \["bash", "-c", "\(.*\)"\]/\1/') ;;
	esac
	# The mount of the packages.
	[ "$instruction" != FROM ] || [ "$stage" = 1 ] || ln -s /out /packages
done </tmp/lines
set +a
if [ "$stage" = 1 ]; then
	cp bin/deb/*.deb /out/
	say 'the first stage built the packages; run this again for the second'
	exit
fi

! grep -i warning /tmp/quiet.log || stop 'the image is built with a warning'
faceauth doctor >/tmp/doctor.log || { cat /tmp/doctor.log && stop 'something is missing in the image'; }
grep -q 'ONNX Runtime: .* runs the networks' /tmp/doctor.log || stop 'the image has no ONNX Runtime'
cd /srv && quietly faceauth demo
chmod -R a+rX /srv
mkdir -p /etc/faceauth-office
sed 's|source: .*|source: /srv/faceauth-demo/recording.avi|; s|^mqtt.*||; s|mqtt-password.*||; $a stay: true' \
	/root/faceauth/packaging/container/office.yaml >/etc/faceauth-office/office.yaml
chown "$user" /etc/faceauth-office/office.yaml && chmod 600 /etc/faceauth-office/office.yaml
cd "$home"
setpriv --reuid "$user" --regid nogroup --clear-groups --no-new-privs env HOME="$home" \
	faceauth enroll /srv/faceauth-demo/alice.avi --name alice >/tmp/office.log 2>&1 || stop "$(cat /tmp/office.log)"
setpriv --reuid "$user" --regid nogroup --clear-groups --no-new-privs env HOME="$home" \
	faceauth office --config /etc/faceauth-office/office.yaml >/tmp/office.log 2>&1 &
office=$!
tries=0
until bash -c "$check" 2>/dev/null && grep -q 'alice has arrived' /tmp/office.log; do
	tries=$((tries + 1))
	[ $tries -lt 3000 ] && kill -0 $office || stop "the office of the image does not work: $(cat /tmp/office.log)"
	sleep .1
done
kill $office
wait $office || stop "the office ended badly: $(cat /tmp/office.log)"
say "the image works: $(grep arrived /tmp/office.log | head -n 1)"
