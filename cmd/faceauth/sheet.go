// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"

	"github.com/faceauth/faceauth/internal/safefile"
)

// doctype is the beginning of a page.
const doctype = "<!doctype html>"

// writeSheet writes a page. It replaces only an older page, and never another file such as the gallery.
func writeSheet(path string, t *template.Template, page any) error {
	failed := func(err error) error { return fmt.Errorf("writing the contact sheet: %w", err) }
	f, err := safefile.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return failed(err)
	default:
		head := make([]byte, len(doctype))
		_, err := io.ReadFull(f, head)
		f.Close()
		if err != nil || string(head) != doctype {
			return failed(fmt.Errorf("%s exists and is not a page of this program; name another file", path))
		}
	}
	var b bytes.Buffer
	if err := t.Execute(&b, page); err != nil {
		return failed(err)
	}
	if err := safefile.Write(path, b.Bytes()); err != nil {
		return failed(err)
	}
	return nil
}
