// SPDX-License-Identifier: Apache-2.0

package faceauth_test

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// eachFile calls do with the path of each regular file of the project, with slashes. It leaves out testdata, bin, and
// hidden folders other than .ci.
func eachFile(t *testing.T, do func(file string) error) {
	t.Helper()
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || file == "bin" || file != "." && file != ".ci" &&
			strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		return do(filepath.ToSlash(file))
	})
	if err != nil {
		t.Fatal(err)
	}
}
