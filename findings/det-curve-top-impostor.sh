#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# scikit-learn 1.2.1 (Debian 12: 1.2.1+dfsg-1), det_curve of a face matcher's scores, of which the highest is an impostor's:
# a twin, or a picture with a wrong name. The curve begins at the lowest threshold that lets this one impostor in, and not
# where nobody is let in. What is read off it for a smaller false match rate (numpy.interp) is the best that the matcher
# can do, and not the worst. roc_curve of the same scores has the other end.
# Expected: a point with no false match, where everybody is refused: FNMR 1 at FMR 0, as roc_curve has it.
# Seen, 1,000 impostors and 100 genuine scores, FNMR at FMR 0.0001: by roc_curve 1, by det_curve 0; where the highest
# score is a genuine one, 0 by both.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
packages='python3-sklearn=1.2.1+dfsg-1'
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
import numpy
from sklearn.metrics import det_curve, roc_curve

genuine = numpy.linspace(.5, .9, 100)
impostors = numpy.linspace(0, .4, 999)
seen = []
for name, top in ('genuine', .45), ('an impostor', .95):
    scores = numpy.concatenate([genuine, impostors, [top]])
    same = numpy.concatenate([numpy.ones(100), numpy.zeros(1000)])
    fmr, fnmr, _ = det_curve(same, scores)
    by_roc, tmr, _ = roc_curve(same, scores, drop_intermediate=False)
    at = 1e-4
    seen.append((numpy.interp(at, fmr, fnmr), 1 - numpy.interp(at, by_roc, tmr)))
    print(f'highest is {name}: det_curve from FMR {fmr.min():g}, FNMR {fnmr[fmr.argmin()]:g}, roc_curve from '
          f'{by_roc[0]:g}, {1 - tmr[0]:g}; FNMR at FMR {at:g}: {seen[-1][0]:.3g} and {seen[-1][1]:.3g}')
sys.exit(not (max(seen[0]) == 0 and seen[1][0] == 0 and seen[1][1] == 1))
PYTHON
/usr/bin/python3 "$dir/run.py"
