// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"

	"github.com/faceauth/faceauth/internal/pagestyle"
	"github.com/faceauth/faceauth/internal/safefile"
)

// doctype is the beginning of a page.
const doctype = "<!doctype html>"

//go:embed *.html.tmpl
var sheetFiles embed.FS

// sheets are the pages of the commands audit, confirm and search.
var sheets = template.Must(template.New("").Funcs(pagestyle.Funcs).Funcs(template.FuncMap{
	"percent": func(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) },
	"stamp":   stamp,
}).ParseFS(sheetFiles, "*.html.tmpl"))

// writeSheet writes the page of a command. It replaces only an older page, and never another file such as the gallery.
func writeSheet(path, command string, page any) error {
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
	if err := sheets.ExecuteTemplate(&b, command+".html.tmpl", page); err != nil {
		return failed(err)
	}
	if err := safefile.Write(path, b.Bytes()); err != nil {
		return failed(err)
	}
	return nil
}
