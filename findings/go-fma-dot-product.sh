#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Go 1.26: the compiler may fuse x*y+z into one instruction that rounds once. For amd64 with GOAMD64=v3 it does so for
# x*y+z of variables, and not for s += a[i]*b[i]; for arm64 it fuses both. A dot product therefore has the same bits on
# amd64 v1 and v3 and others on arm64, while an expression beside it differs between v1 and v3.
# Expected: v3 and arm64 fuse the same expressions.
# Seen (number of fused instructions of both functions, product and sum): amd64 v1: 0 0, v3: 1 0, arm64: 1 1.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >p.go <<'EOF'
package p

//go:noinline
func Product(x, y, z float64) float64 { return x*y + z }

//go:noinline
func Sum(a, b []float64) (s float64) {
	for i := range a {
		s += a[i] * b[i]
	}
	return s
}
EOF
printf 'module p\n\ngo 1.26\n' >go.mod
fused() { # function, with the environment of the caller
	go tool compile -p p -S -o p.o p.go | awk -v f="p.$1 STEXT" '
		/STEXT/ { in_it = index($0, f) == 1 }
		in_it && /VFMADD|FMADDD/ { n++ }
		END { print n + 0 }'
}
v1="$(GOARCH=amd64 GOAMD64=v1 fused Product) $(GOARCH=amd64 GOAMD64=v1 fused Sum)"
v3="$(GOARCH=amd64 GOAMD64=v3 fused Product) $(GOARCH=amd64 GOAMD64=v3 fused Sum)"
arm="$(GOARCH=arm64 fused Product) $(GOARCH=arm64 fused Sum)"
printf '%s; product and sum: amd64 v1 %s, v3 %s, arm64 %s\n' "$(go version)" "$v1" "$v3" "$arm"
[ "$v1" = '0 0' ] && [ "$v3" = '1 0' ] && [ "$arm" = '1 1' ]
