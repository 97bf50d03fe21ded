// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"math"

	"github.com/faceauth/faceauth/internal/safefile"
)

// Salvage reads the records of all pages of the database at path whose checksum is right, and of the log. It calls
// each with the number of a row and its values: nil, int64, float64, string or []byte. The column of the number itself
// is nil. Tables are not told apart. Salvage writes nothing, and no program may change the database meanwhile.
// Pages is the number of pages, and damaged of those that cannot be read or are empty.
func Salvage(path string, each func(row int64, values []any)) (pages, damaged int, err error) {
	d := &DB{path: real(path), key: Key(path)}
	defer func() { err = d.explain(err) }()
	data, err := plain(d.path, d.key)
	if err != nil {
		return 0, 0, err
	}
	log, err := plain(d.path+"-wal", d.key)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, 0, err
	}
	f, empty := make(remains), make([]byte, pageSize) // nobody can tell an erased page from a free one
	for n := 0; (n+1)*pageSize <= len(data); n++ {
		page := data[n*pageSize:][:pageSize]
		if [8]byte(page[usable:]) == checksum(page[:usable]) && !bytes.Equal(page, empty) {
			f[n+1] = page
		}
	}
	f.apply(log)
	if len(f) == 0 { // a wrong key is no damage
		if err := d.inspect(); err != nil {
			return 0, 0, err
		}
	}
	pages = (len(data) + pageSize - 1) / pageSize
	for n := range f {
		pages = max(pages, n)
	}
	for n := 1; n <= pages; n++ {
		if f[n] != nil {
			f.rows(n, each)
		}
	}
	return pages, pages - len(f), nil
}

// usable is the size of a page without its checksum.
const usable = pageSize - 8

// remains are the readable pages of a database, by number.
type remains map[int][]byte

// plain returns the bytes of a file as they are without encryption.
func plain(path string, key []byte) ([]byte, error) {
	f, err := safefile.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil || len(key) == 0 {
		return data, err
	}
	for i := 0; i+blockSize <= len(data); i += blockSize {
		copy(data[i:], decrypt(data[i:i+blockSize], int64(i), key))
	}
	return data, nil
}

// checksum is that of a page (https://sqlite.org/cksumvfs.html).
func checksum(page []byte) (sum [8]byte) {
	a, b := sums(0, 0, page, binary.LittleEndian)
	binary.LittleEndian.PutUint32(sum[:], a)
	binary.LittleEndian.PutUint32(sum[4:], b)
	return sum
}

// sums is the checksum of pages and of logs, of a multiple of 8 bytes.
func sums(a, b uint32, data []byte, order binary.ByteOrder) (uint32, uint32) {
	for ; len(data) >= 8; data = data[8:] {
		a += order.Uint32(data) + b
		b += order.Uint32(data[4:]) + a
	}
	return a, b
}

// apply takes in the pages of the transactions of a log that are whole (https://sqlite.org/fileformat.html#walformat).
func (f remains) apply(log []byte) {
	const header, frame = 32, 24
	if len(log) < header || binary.BigEndian.Uint32(log)&^1 != 0x377f0682 ||
		binary.BigEndian.Uint32(log[8:]) != pageSize {
		return
	}
	var order binary.ByteOrder = binary.LittleEndian
	if log[3]&1 == 1 {
		order = binary.BigEndian
	}
	same := func(at []byte, a, b uint32) bool {
		return binary.BigEndian.Uint32(at) == a && binary.BigEndian.Uint32(at[4:]) == b
	}
	a, b := sums(0, 0, log[:24], order)
	if !same(log[24:], a, b) {
		return
	}
	salt := string(log[16:24])
	open := make(remains) // pages of a transaction that has not ended
	for log = log[header:]; len(log) >= frame+pageSize; log = log[frame+pageSize:] {
		page := log[frame:][:pageSize]
		a, b = sums(a, b, log[:8], order)
		a, b = sums(a, b, page, order)
		if string(log[8:16]) != salt || !same(log[16:], a, b) {
			return
		}
		open[int(binary.BigEndian.Uint32(log))] = page
		if size := int(binary.BigEndian.Uint32(log[4:])); size > 0 { // the transaction ends
			for n, page := range open {
				f[n] = page
			}
			clear(open)
			for n := range f {
				if n > size {
					delete(f, n)
				}
			}
		}
	}
}

// rows calls each with the rows of page n, if it is a leaf of a table. Rows that do not fit the format are left out.
func (f remains) rows(n int, each func(int64, []any)) {
	page, head := f[n], 0
	if n == 1 {
		head = 100 // the header of the database
	}
	if page[head] != 0x0d {
		return
	}
	for i := range int(binary.BigEndian.Uint16(page[head+3:])) {
		if head+8+2*i+2 > usable {
			return
		}
		at := int(binary.BigEndian.Uint16(page[head+8+2*i:]))
		if at >= usable {
			continue
		}
		cell := page[at:usable]
		size, cell := varint(cell)
		row, cell := varint(cell)
		if payload := f.payload(cell, size); payload != nil {
			if values := record(payload); values != nil {
				each(row, values)
			}
		}
	}
}

// payload returns the bytes of a row, which may go on in other pages; nil if they are not there.
func (f remains) payload(cell []byte, size int64) []byte {
	const most, least = usable - 35, (usable-12)*32/255 - 23
	if size < 0 || size > int64(len(f))*pageSize {
		return nil
	}
	here := int(size)
	if here > most {
		if here = least + (int(size)-least)%(usable-4); here > most {
			here = least
		}
	}
	if here == int(size) {
		if here > len(cell) {
			return nil
		}
		return cell[:here]
	}
	if here+4 > len(cell) {
		return nil
	}
	all := append(make([]byte, 0, size), cell[:here]...)
	for next := int(binary.BigEndian.Uint32(cell[here:])); len(all) < int(size); {
		page := f[next]
		if page == nil {
			return nil
		}
		all = append(all, page[4:][:min(usable-4, int(size)-len(all))]...)
		next = int(binary.BigEndian.Uint32(page))
	}
	return all
}

// record returns the values of a row; nil if it does not fit the format.
func record(b []byte) (values []any) {
	size, _ := varint(b)
	if size < 1 || size > int64(len(b)) {
		return nil
	}
	head, body := b[:size], b[size:]
	_, head = varint(head)
	for len(head) > 0 {
		var kind int64
		kind, head = varint(head)
		n := int64(0)
		switch {
		case kind >= 12:
			n = (kind - 12) / 2
		case kind == 7:
			n = 8
		case kind >= 0 && kind <= 6:
			n = []int64{0, 1, 2, 3, 4, 6, 8}[kind]
		}
		if n > int64(len(body)) || kind < 0 || kind == 10 || kind == 11 {
			return nil
		}
		var v any
		number := int64(0)
		for i, c := range body[:min(n, 8)] {
			if number = number<<8 | int64(c); i == 0 {
				number = int64(int8(c))
			}
		}
		switch {
		case kind == 0:
		case kind <= 6:
			v = number
		case kind == 7:
			v = math.Float64frombits(uint64(number))
		case kind <= 9:
			v = kind - 8
		case kind%2 == 0:
			v = body[:n]
		default:
			v = string(body[:n])
		}
		values, body = append(values, v), body[n:]
	}
	return values
}

// varint reads a number of SQLite's format, and returns what follows it.
func varint(b []byte) (n int64, rest []byte) {
	for i := 0; i < 9; i++ {
		if i >= len(b) {
			return -1, nil
		}
		if i == 8 {
			return n<<8 | int64(b[8]), b[9:]
		}
		if n = n<<7 | int64(b[i]&0x7f); b[i] < 0x80 {
			return n, b[i+1:]
		}
	}
	return n, nil
}
