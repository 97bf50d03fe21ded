// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"os"
)

// bbolt follows pointers in pages without a check: a damaged page can lead it to other memory of this program. Go's
// garbage collector then ends the program, and nothing can prevent it. So this code checks the file once before bbolt
// opens it. It needs the following facts about the format (version 2).
const (
	pageHead    = 16 // id uint64, flags uint16, count uint16, overflow uint32
	elementSize = 16 // branch: pos, ksize uint32, page uint64; leaf: flags, pos, ksize, vsize uint32
	bucketHead  = 16 // root page uint64, sequence uint64
	metaSize    = 64 // magic, version, page size, flags uint32; root bucket; freelist, pages, txid, checksum uint64

	branchPage   = 0x01
	leafPage     = 0x02
	freelistPage = 0x10
	bucketLeaf   = 0x01

	deepest = 64 // levels of pages
)

// walk holds the state of a check.
type walk struct {
	data  []byte
	size  uint64 // size of a page in bytes
	pages uint64
	seen  map[uint64]bool
}

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrDamaged, fmt.Sprintf(format, args...))
}

// intact returns nil for the bytes of an intact database: all pages are in place and have valid content. The error
// wraps [ErrDamaged].
func intact(data []byte) error {
	w := walk{data: data, size: uint64(os.Getpagesize()), seen: map[uint64]bool{0: true, 1: true}}
	if uint64(len(data))%w.size != 0 || uint64(len(data)) < 4*w.size {
		return damaged("it is truncated")
	}
	meta := w.meta()
	if meta == nil {
		return damaged("it has no head")
	}
	root, free, pages := binary.NativeEndian.Uint64(meta[16:]), binary.NativeEndian.Uint64(
		meta[32:]), binary.NativeEndian.Uint64(meta[40:])
	if pages > uint64(len(data))/w.size {
		return damaged("it is truncated")
	}
	w.pages = pages
	if err := w.tree(root, 0); err != nil {
		return err
	}
	return w.free(free)
}

// meta returns the valid head, as bbolt chooses it: the later one if it is intact, else the other one.
func (w *walk) meta() []byte {
	var best []byte
	for i := range uint64(2) {
		m := w.data[i*w.size+pageHead:][:metaSize]
		h := fnv.New64a()
		h.Write(m[:metaSize-8])
		whole := binary.NativeEndian.Uint32(m) == 0xED0CDAED && binary.NativeEndian.Uint32(m[4:]) == 2 &&
			uint64(binary.NativeEndian.Uint32(m[8:])) == w.size && binary.NativeEndian.Uint64(m[56:]) == h.Sum64()
		if whole && (best == nil || binary.NativeEndian.Uint64(m[48:]) > binary.NativeEndian.Uint64(best[48:])) {
			best = m
		}
	}
	return best
}

// page returns a page with its overflow pages, which no other page may use.
func (w *walk) page(id uint64) ([]byte, error) {
	if id >= w.pages {
		return nil, damaged("there is no page %d", id)
	}
	at := w.data[id*w.size:]
	over := uint64(binary.NativeEndian.Uint32(at[12:]))
	if binary.NativeEndian.Uint64(at) != id || id+over >= w.pages {
		return nil, damaged("page %d has the number of another page", id)
	}
	for i := id; i <= id+over; i++ {
		if w.seen[i] {
			return nil, damaged("page %d is used twice", i)
		}
		w.seen[i] = true
	}
	return at[:(over+1)*w.size], nil
}

// tree checks a page and all pages below it.
func (w *walk) tree(id uint64, depth int) error {
	if depth > deepest {
		return damaged("its pages are too deep")
	}
	p, err := w.page(id)
	if err != nil {
		return err
	}
	switch flags := binary.NativeEndian.Uint16(p[8:]); flags {
	case leafPage:
		return w.leaf(p, depth)
	case branchPage:
		return w.branch(p, depth)
	default:
		return damaged("page %d is of the kind %#x", id, flags)
	}
}

// elements calls do with each element of a page, and with the data from its position to the end of the page.
func elements(p []byte, pos int, do func(element, rest []byte) error) error {
	n := int(binary.NativeEndian.Uint16(p[10:]))
	if pageHead+n*elementSize > len(p) {
		return damaged("a page has %d elements", n)
	}
	for i := range n {
		start := pageHead + i*elementSize
		e := p[start : start+elementSize]
		at := uint64(start) + uint64(binary.NativeEndian.Uint32(e[pos:]))
		if at < uint64(pageHead+n*elementSize) || at > uint64(len(p)) {
			return damaged("an element is outside its page")
		}
		if err := do(e, p[at:]); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) branch(p []byte, depth int) error {
	if binary.NativeEndian.Uint16(p[10:]) == 0 {
		return damaged("a branch has no leaves")
	}
	var last []byte
	return elements(p, 0, func(e, rest []byte) error {
		n := uint64(binary.NativeEndian.Uint32(e[4:]))
		if n > uint64(len(rest)) || last != nil && bytes.Compare(last, rest[:n]) >= 0 {
			return damaged("the keys of a branch are in disorder")
		}
		last = rest[:n]
		return w.tree(binary.NativeEndian.Uint64(e[8:]), depth+1)
	})
}

func (w *walk) leaf(p []byte, depth int) error {
	var last []byte
	return elements(p, 4, func(e, rest []byte) error {
		flags, k, v := binary.NativeEndian.Uint32(e), uint64(
			binary.NativeEndian.Uint32(e[8:])), uint64(binary.NativeEndian.Uint32(e[12:]))
		if k+v > uint64(len(rest)) || last != nil && bytes.Compare(last, rest[:k]) >= 0 {
			return damaged("the keys of a leaf are in disorder")
		}
		last = rest[:k]
		switch flags {
		case 0:
			return nil
		case bucketLeaf:
			return w.bucket(rest[k:k+v], depth+1)
		}
		return damaged("an element is of the kind %#x", flags)
	})
}

// bucket checks a bucket: a page of its own, or the data after its head.
func (w *walk) bucket(value []byte, depth int) error {
	if len(value) < bucketHead {
		return damaged("a bucket is truncated")
	}
	if root := binary.NativeEndian.Uint64(value); root != 0 {
		return w.tree(root, depth)
	}
	inline := value[bucketHead:]
	if depth > deepest || len(inline) < pageHead || binary.NativeEndian.Uint16(inline[8:]) != leafPage ||
		binary.NativeEndian.Uint32(inline[12:]) != 0 {
		return damaged("a bucket has no page")
	}
	return w.leaf(inline, depth)
}

// free checks the list of free pages.
func (w *walk) free(id uint64) error {
	p, err := w.page(id)
	if err != nil {
		return err
	}
	if binary.NativeEndian.Uint16(p[8:]) != freelistPage {
		return damaged("the list of free pages is none")
	}
	list, n := p[pageHead:], uint64(binary.NativeEndian.Uint16(p[10:]))
	if n == 0xFFFF {
		n, list = binary.NativeEndian.Uint64(list), list[8:]
	}
	if n > uint64(len(list))/8 {
		return damaged("the list of free pages is truncated")
	}
	for i := range n {
		free := binary.NativeEndian.Uint64(list[8*i:])
		if free < 2 || free >= w.pages || w.seen[free] {
			return damaged("page %d is in use, or free twice", free)
		}
		w.seen[free] = true
	}
	return nil
}
