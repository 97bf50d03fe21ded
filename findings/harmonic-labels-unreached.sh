#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# scikit-learn 1.2.1 and NetworkX 2.8.8 (Debian 12: 1.2.1+dfsg-1, 2.8.8-1), learners that hand labels on over a graph:
# LabelSpreading and LabelPropagation with the kernel knn, node_classification.harmonic_function and
# local_and_global_consistency. A sample that no way leads to from a labelled one, as a stranger's face has none to any
# enrolled person's, gets the label that is first: the lowest in scikit-learn, that of the first labelled node in NetworkX.
# Neither warns. In scikit-learn the row of its label_distributions_ is all 0, and no probability.
# Expected: no label (scikit-learn's own -1, None), a row of equal shares or of NaN, a warning, or an error.
# Seen: the stranger's four samples are person 1, by both of scikit-learn; zoe, by both of NetworkX.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
packages='python3-sklearn=1.2.1+dfsg-1 python3-networkx=2.8.8-1'
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
import sys, warnings
import networkx
from networkx.algorithms.node_classification import harmonic_function, local_and_global_consistency
from sklearn.semi_supervised import LabelPropagation, LabelSpreading

def square(x):
    return [[x, 0], [x, 1], [x + 1, 0], [x + 1, 1]]

samples = square(0) + square(100) + square(200)
labels = [2, -1, -1, -1, 1, -1, -1, -1, -1, -1, -1, -1] # persons 2 and 1, and a stranger
graph = networkx.Graph([('a', 'a2'), ('a2', 'b2'), ('b2', 'b'), ('stranger', 'again')])
graph.nodes['a']['label'] = 'zoe'
graph.nodes['b']['label'] = 'ann'
seen = []
with warnings.catch_warnings():
    warnings.simplefilter('error')
    for learner in LabelSpreading, LabelPropagation:
        fitted = learner(kernel='knn', n_neighbors=3).fit(samples, labels)
        seen.append(fitted.transduction_.tolist() == [2] * 4 + [1] * 8 and not fitted.label_distributions_[8:].any())
        print(learner.__name__, *fitted.transduction_, 'sum of the last row:', fitted.label_distributions_[-1].sum())
    for learner in harmonic_function, local_and_global_consistency:
        got = dict(zip(graph, learner(graph)))
        seen.append(got['a2'] == 'zoe' and got['b2'] == 'ann' and got['stranger'] == got['again'] == 'zoe')
        print(learner.__name__, got)
sys.exit(not all(seen))
PYTHON
/usr/bin/python3 "$dir/run.py"
