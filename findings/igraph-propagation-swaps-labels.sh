#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# python-igraph 0.10.2 with igraph 0.10.2 (Debian 12: 0.10.2-1+b1, 0.10.2+ds-2), label propagation from a few
# labelled vertices, which are declared fixed, as from enrolled faces to others of a graph of likenesses. What comes back
# are not the labels that went in: they are numbered anew, by the first vertex that has each. If the first vertex is of
# person 1 and the last of person 0, then alice is bob afterwards, on the fixed vertices too.
# Expected: a fixed vertex has the label that it was given; its neighbours have that one.
# Seen, on a chain of six with a weak link in its middle, the labels of its ends and the six that come back: 0 and 1: 0 0 0
# 1 1 1; 1 and 0, 5 and 2: 0 0 0 1 1 1 as well.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
packages='python3-igraph=0.10.2-1+b1 libigraph3=0.10.2+ds-2'
for p in $packages; do
	[ "$(dpkg-query -W -f '${Package}=${Version}' "${p%%=*}" 2>/dev/null)" = "$p" ] || missing=1
done
if [ -n "${missing-}" ]; then
	cd "$dir"
	apt-get -qq -s --no-install-recommends install $packages >plan
	sed -n 's/^Inst \([^ ]*\) .*(\([^ ]*\) .*/\1=\2/p' plan | xargs apt-get -q download >apt.log 2>&1
	for package in *.deb; do dpkg -x "$package" "$dir/root"; done
	PYTHONPATH=$dir/root/usr/lib/python3/dist-packages
	LD_LIBRARY_PATH=$(find "$dir/root" -name '*.so*' -printf '%h\n' | sort -u | paste -sd:)
	export PYTHONPATH LD_LIBRARY_PATH
fi
cat >"$dir/run.py" <<'PYTHON'
import sys
import igraph

seen = []
for ends in (0, 1), (1, 0), (5, 2):
    chain = igraph.Graph([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)])
    labels = chain.community_label_propagation(weights=[1, 1, .01, 1, 1], initial=[ends[0], -1, -1, -1, -1, ends[1]],
                                               fixed=[True, False, False, False, False, True]).membership
    print(f'the ends are {ends[0]} and {ends[1]}: {labels}')
    seen.append(labels)
sys.exit(seen != [[0, 0, 0, 1, 1, 1]] * 3)
PYTHON
/usr/bin/python3 "$dir/run.py"
