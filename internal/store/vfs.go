// SPDX-License-Identifier: Apache-2.0

package store

import "github.com/ncruces/go-sqlite3/vfs"

// The driver (v0.35 to v0.37) panics at a checkpoint if a database has page checksums and its file offers to be mapped
// into memory. A file of unmapped offers no such thing; nothing here wants it.
func init() { vfs.Register("unmapped", unmapped{vfs.Find("")}) }

type unmapped struct{ vfs.VFS }

// OpenFilename implements [vfs.VFSFilename].
func (u unmapped) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	f, flags, err := u.VFS.(vfs.VFSFilename).OpenFilename(name, flags)
	if err != nil {
		return nil, flags, err
	}
	return unmappedFile{f}, flags, nil
}

type unmappedFile struct{ vfs.File }

// SharedMemory implements [vfs.FileSharedMemory].
func (f unmappedFile) SharedMemory() vfs.SharedMemory {
	if s, ok := f.File.(vfs.FileSharedMemory); ok {
		return s.SharedMemory()
	}
	return nil
}
