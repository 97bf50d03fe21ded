// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// crowded reports whether a disk has no room for a number of bytes.
func crowded(dir string, bytes int64) bool {
	var s unix.Statfs_t
	return unix.Statfs(dir, &s) == nil && uint64(s.Bsize)*s.Bavail < uint64(bytes)
}

// remote reports whether a folder is on a network file system.
func remote(dir string) bool {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return false // opening the file gives the error
	}
	return slices.Contains([]int64{unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC,
		unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC,
		unix.AFS_SUPER_MAGIC, unix.V9FS_MAGIC, unix.CEPH_SUPER_MAGIC}, int64(s.Type)&0xffffffff)
}

// programs lists the other processes that have a file open, as far as this user may see them.
func programs(path string) (all []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, f := range files {
		process := filepath.Dir(filepath.Dir(f))
		number := filepath.Base(process)
		if target, err := os.Readlink(f); err != nil || target != path ||
			number == fmt.Sprint(os.Getpid()) {
			continue
		}
		name, _ := os.ReadFile(filepath.Join(process, "comm"))
		all = append(all, fmt.Sprintf("%s (process %s)", strings.TrimSpace(string(name)), number))
	}
	slices.Sort(all)
	return slices.Compact(all)
}
