// SPDX-License-Identifier: Apache-2.0

package table

import (
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	var b strings.Builder
	x := New(&b, 2)
	for _, line := range []string{"all\n", "山田\t1\tx\n", "Zoe\u0308\t12\ty\n", "bob\t3\tz"} {
		x.Write([]byte(line))
	}
	want := "all\n山田  1   x\nZoe\u0308   12  y\nbob   3   z"
	if err := x.Flush(); err != nil || b.String() != want {
		t.Errorf("%v\n%s\nwant\n%s", err, b.String(), want)
	}
}
