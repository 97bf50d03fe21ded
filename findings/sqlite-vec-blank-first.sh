#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# sqlite-vec 0.1.9 (npm: sqlite-vec-linux-x64), KNN of faces by cosine, with a row of zeros among them: a placeholder, or a
# picture in which no face was found. Its distance to everything is NULL. As the first row of a block of 1,024 it comes
# before every other row of its block, even before the very vector that was asked for: with k = 1 the answer is the zeros, or
# somebody else of another block. In any other row it does no harm. "order by vec_distance_cosine(...)" has it first always.
# Expected: what has no distance is not among the nearest, or the last of them, wherever it lies.
# Seen, of 2,000 vectors, 20 of them asked for with k = 1: with zeros in row 2, 1,024 or 1,026 all find themselves. In row 1
# those of its block, 10, find another vector; in row 1,025 all 20 find the zeros, with the distance NULL.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >package-lock.json <<'JSON'
{"name": "finding", "lockfileVersion": 3, "packages": {
  "": {"name": "finding", "dependencies": {"sqlite-vec-linux-x64": "0.1.9"}},
  "node_modules/sqlite-vec-linux-x64": {"version": "0.1.9",
    "integrity": "sha512-w3tCH8xK2finW8fQJ/m8uqKodXUZ9KAuAar2UIhz4BHILfpE0WM/MTGCRfa7RjYbrYim5Luk3guvMOGI7T7JQA=="}}}
JSON
echo '{"name": "finding", "dependencies": {"sqlite-vec-linux-x64": "0.1.9"}}' >package.json
npm ci --silent --ignore-scripts --no-audit --no-fund
cat >run.py <<'PYTHON'
import random, sqlite3, struct, sys

db = sqlite3.connect(':memory:')
db.enable_load_extension(True)
db.load_extension('./node_modules/sqlite-vec-linux-x64/vec0')
random.seed(1)
seen = {}
for blank in 2, 1024, 1026, 1, 1025:
    db.execute('create virtual table face using vec0(vector float[8] distance_metric=cosine)')
    vectors = {}
    for row in range(1, 2001):
        values = [random.gauss(0, 1) if row != blank else 0 for _ in range(8)]
        vectors[row] = struct.pack('8f', *values)
        db.execute('insert into face(rowid, vector) values (?, ?)', (row, vectors[row]))
    found = [(row, db.execute('select rowid, distance from face where vector match ? and k = 1', (vectors[row],)).fetchone())
             for row in range(50, 2000, 100)]
    db.execute('drop table face')
    right = sum(answer[0] == row for row, answer in found)
    zeros = sum(answer == (blank, None) for _, answer in found)
    others = len(found) - right - zeros
    print(f'zeros in row {blank}: of {len(found)}, {right} find themselves, {zeros} the zeros, {others} another vector')
    seen[blank] = right, zeros, others
sys.exit(seen != {2: (20, 0, 0), 1024: (20, 0, 0), 1026: (20, 0, 0), 1: (10, 0, 10), 1025: (0, 20, 0)})
PYTHON
/usr/bin/python3 run.py # Debian's, which may load extensions of SQLite
