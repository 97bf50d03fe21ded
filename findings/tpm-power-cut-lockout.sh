#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A TPM 2.0 (libtpms by swtpm 0.7.1, tpm2-tools 5.4; Debian 12: 0.7.1-1.3, 5.4-1) that seals a secret by a password, and a
# tablet or a wall computer whose power is cut. Each start after a cut counts as one wrong password, if anything that the
# TPM guards against guessing was used before the cut, though every password was right. When as many are counted as wrong
# ones are allowed, 3 here, the right password is refused, too.
# Expected: right passwords count nothing, however the power goes.
# Seen, the counter after 3 starts: 0 after orderly ends; 0 after cuts without use; 3 after cuts with use, each with the
# secret before, and then it is refused: lockout.
set -eu
dir=$(mktemp -d)
pid=
trap 'if [ "$pid" ]; then kill -9 "$pid"; fi 2>/dev/null; rm -rf "$dir"' EXIT
packages='swtpm=0.7.1-1.3 tpm2-tools=5.4-1'
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
cd "$dir"
mkdir state
start() {
	for try in 1 2 3 4 5; do # two ports beside one another, which nobody else may take meanwhile
		port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
		swtpm socket --tpm2 --tpmstate dir=state --flags not-need-init --server "type=tcp,port=$port,bindaddr=127.0.0.1" \
			--ctrl "type=tcp,port=$((port + 1)),bindaddr=127.0.0.1" >swtpm.log 2>&1 &
		pid=$!
		TPM2TOOLS_TCTI=swtpm:host=127.0.0.1,port=$port
		export TPM2TOOLS_TCTI
		for wait in 1 2 3 4 5 6 7 8 9 10; do
			if tpm2_startup -c >start.log 2>&1; then return; fi
			kill -0 "$pid" 2>/dev/null || break
			sleep 1
		done
		cut
	done
	cat swtpm.log start.log
	exit 1
}
cut() {
	kill -9 "$pid" 2>/dev/null || true
	wait "$pid" 2>/dev/null || true
	pid=
}
quiet() { "$@" >tool.log 2>&1; }
unseal() { # prints the secret, or nothing
	quiet tpm2_createprimary -C o -c primary.ctx && quiet tpm2_flushcontext -t &&
		quiet tpm2_load -C primary.ctx -u public -r private -c sealed.ctx && quiet tpm2_flushcontext -t &&
		tpm2_unseal -c sealed.ctx -p right 2>tool.log || true
}
counter() {
	tpm2_getcap properties-variable | sed -n 's/^TPM2_PT_LOCKOUT_COUNTER: //p'
}
start
quiet tpm2_createprimary -C o -c primary.ctx
quiet tpm2_flushcontext -t
printf open | tpm2_create -Q -C primary.ctx -i - -u public -r private -p right
quiet tpm2_shutdown
cut
for i in 1 2 3; do
	start
	orderly="${orderly-}$(unseal),"
	quiet tpm2_shutdown
	cut
done
start
orderly=$orderly$(counter)
quiet tpm2_shutdown
cut
for i in 1 2 3; do
	start
	cut
done
start
unused=$(counter)
for i in 1 2 3; do
	used="${used-}$(unseal),"
	cut
	start
done
used=$used$(counter)
last=$(unseal)
echo "orderly ends $orderly; cuts without use $unused; cuts with use $used; then: $(grep -o -m1 '[A-Z]* lockout mode' tool.log)"
[ "$orderly" = open,open,open,0x0 ] && [ "$unused" = 0x0 ] && [ "$used" = open,open,open,0x3 ] && [ -z "$last" ]
