// SPDX-License-Identifier: Apache-2.0

package store

import (
	"encoding/binary"

	"github.com/ncruces/go-sqlite3/vfs"
)

// The file systems of databases without and with a key.
func init() {
	vfs.Register("plain", ours{vfs.Find("")})
	vfs.Register("encrypted", ours{vfs.Find("adiantum")})
}

// ours is a file system whose databases are not mapped into memory, and whose copies have
// checksums.
type ours struct{ vfs.VFS }

// OpenFilename implements [vfs.VFSFilename].
func (o ours) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	f, flags, err := o.VFS.(vfs.VFSFilename).OpenFilename(name, flags)
	if err != nil {
		return nil, flags, err
	}
	return file{f, flags&vfs.OPEN_MAIN_DB != 0 && name.URIParameter("sums") != ""}, flags, nil
}

// file does not offer to be mapped into memory: the driver (v0.35 to v0.37) panics at a checkpoint
// if a database with page checksums does. Nothing here wants it.
type file struct {
	vfs.File
	// pages get their checksums here: the driver knows of them when it has seen page 1, and a copy
	// begins elsewhere
	sums bool
}

// SharedMemory implements [vfs.FileSharedMemory].
func (f file) SharedMemory() vfs.SharedMemory {
	if s, ok := f.File.(vfs.FileSharedMemory); ok {
		return s.SharedMemory()
	}
	return nil
}

// WriteAt implements [vfs.File].
func (f file) WriteAt(p []byte, at int64) (int, error) {
	if f.sums && len(p) == pageSize {
		copy(p[pageSize-8:], checksum(p[:pageSize-8]))
	}
	return f.File.WriteAt(p, at)
}

// checksum is that of a page (https://sqlite.org/cksumvfs.html).
func checksum(page []byte) []byte {
	var a, b uint32
	for ; len(page) >= 8; page = page[8:] {
		a += binary.LittleEndian.Uint32(page) + b
		b += binary.LittleEndian.Uint32(page[4:]) + a
	}
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, a), b)
}
