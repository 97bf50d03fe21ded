// SPDX-License-Identifier: Apache-2.0

package heif

import "fmt"

// box is a part of a file.
type box struct {
	kind string
	body []byte
}

// find returns the body of the first box of a kind in a file, which may be followed by what is no
// box.
func find(data []byte, kind string) ([]byte, error) {
	r := reader{b: data}
	for r.more() {
		b := r.box()
		if r.short {
			break
		}
		if b.kind == kind {
			return b.body, nil
		}
	}
	return nil, fmt.Errorf("%w: the box %q is missing", ErrDamaged, kind)
}

// reader reads numbers and boxes. Short says that there was less than was asked for: what is read
// is 0 or empty then.
type reader struct {
	b     []byte
	short bool
}

func (r *reader) more() bool { return len(r.b) > 0 && !r.short }

func (r *reader) take(n int) []byte {
	if n > len(r.b) {
		r.b, r.short = nil, true
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

// n reads a number of 0 to 15 bytes, of which the last eight count.
func (r *reader) n(bytes int) (v uint64) {
	for _, c := range r.take(bytes) {
		v = v<<8 | uint64(c)
	}
	return v
}

// full reads the version and the flags of a full box, and returns the version.
func (r *reader) full() uint64 { return r.n(4) >> 24 }

// id reads the number of an item, or their number.
func (r *reader) id(wide bool) uint32 {
	if wide {
		return uint32(r.n(4))
	}
	return uint32(r.n(2))
}

func (r *reader) box() box {
	n := r.n(4)
	kind := string(r.take(4))
	head := uint64(8)
	switch n {
	case 0: // to the end
		return box{kind, r.take(len(r.b))}
	case 1:
		n, head = r.n(8), 16
	}
	if n < head || n-head > uint64(len(r.b)) {
		r.b, r.short = nil, true
		return box{}
	}
	return box{kind, r.take(int(n - head))}
}
