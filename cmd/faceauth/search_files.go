// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/faceauth/faceauth/internal/safefile"
)

// collect puts the files with hits into a folder, which it makes: as links to the same content, or else as copies.
func collect(folder string, all []found) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	done := map[string]bool{}
	for _, f := range all {
		for _, h := range f.Hits {
			from := source(h)
			info, err := os.Stat(from)
			if err != nil {
				return err
			}
			if done[from] || info.IsDir() { // a series has no file of its own
				continue
			}
			done[from] = true
			if err := put(folder, from, info); err != nil {
				return err
			}
		}
	}
	return nil
}

// put links or copies a file into a folder, under its name, or with a number if another file has it there.
func put(folder, from string, info os.FileInfo) error {
	base := filepath.Base(from)
	end := filepath.Ext(base)
	real, err := filepath.EvalSymlinks(from)
	if err != nil {
		return err
	}
	for n := 1; ; n++ {
		to := filepath.Join(folder, base)
		if n > 1 {
			to = filepath.Join(folder, fmt.Sprintf("%s-%d%s", strings.TrimSuffix(base, end), n, end))
		}
		there, err := os.Lstat(to)
		if err == nil {
			if os.SameFile(there, info) || there.Size() == info.Size() && there.ModTime().Equal(info.ModTime()) {
				return nil // from an earlier search
			}
			continue
		}
		if os.Link(real, to) == nil {
			return nil
		}
		return copied(real, to, info)
	}
}

func copied(from, to string, info os.FileInfo) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := safefile.Create(to)
	if err != nil {
		return err
	}
	defer out.Abort()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	if err := out.Commit(); err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}
