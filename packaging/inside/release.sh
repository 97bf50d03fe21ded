#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The two commands of the README. Tests that need recordings or a booted system skip, as on any machine without them.
. /root/faceauth/packaging/inside/demo.sh

make test >/tmp/test.log 2>&1 || {
	grep -v '^ok\|no test files' /tmp/test.log | tail -n 60 >&2
	stop 'make test failed'
}
say "make test passed: $(grep -c '^ok' /tmp/test.log) packages"
