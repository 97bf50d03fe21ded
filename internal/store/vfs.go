// SPDX-License-Identifier: Apache-2.0

package store

import (
	"encoding/binary"

	"github.com/ncruces/go-sqlite3/vfs"
)

// The file systems of databases without and with a key.
func init() {
	vfs.Register("plain", wiping{vfs.Find("")})
	vfs.Register("encrypted", wiping{vfs.Find("adiantum")})
}

// wiping is a file system whose databases keep nothing of deleted rows: SQLite overwrites them (secure_delete), but
// where it has moved rows to another page, a copy may stay in the free part of the old one.
type wiping struct{ vfs.VFS }

// OpenFilename implements [vfs.VFSFilename].
func (w wiping) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	f, flags, err := w.VFS.(vfs.VFSFilename).OpenFilename(name, flags)
	if err != nil {
		return nil, flags, err
	}
	return wipedFile{f, flags&vfs.OPEN_MAIN_DB != 0}, flags, nil
}

// wipedFile does not offer to be mapped into memory: the driver (v0.35 to v0.37) panics at a checkpoint if a database
// with page checksums does. Nothing here wants it.
type wipedFile struct {
	vfs.File
	main bool
}

// SharedMemory implements [vfs.FileSharedMemory].
func (f wipedFile) SharedMemory() vfs.SharedMemory {
	if s, ok := f.File.(vfs.FileSharedMemory); ok {
		return s.SharedMemory()
	}
	return nil
}

// WriteAt implements [vfs.File].
func (f wipedFile) WriteAt(p []byte, at int64) (int, error) {
	if f.main && len(p) == pageSize && wipe(p, at == 0) {
		sum := checksum(p[:usable])
		copy(p[usable:], sum[:])
	}
	return f.File.WriteAt(p, at)
}

// wipe overwrites the free part of a page between its list of rows and the rows, and reports whether there was
// anything. Only a page of a table or an index has such a part; the others begin with the number of a page, or with
// zeros. Usable is known: [DB.create] has all databases end their pages with a checksum.
func wipe(page []byte, first bool) (changed bool) {
	head := 0
	if first {
		head = 100 // the header of the database
	}
	size := 8
	switch page[head] {
	case 2, 5: // an inner page
		size = 12
	case 10, 13:
	default:
		return false
	}
	from := head + size + 2*int(binary.BigEndian.Uint16(page[head+3:]))
	to := int(binary.BigEndian.Uint16(page[head+5:]))
	if from > to || to > usable {
		return false
	}
	for i := from; i < to; i++ {
		changed = changed || page[i] != 0
		page[i] = 0
	}
	return changed
}
