// SPDX-License-Identifier: Apache-2.0

// Package pagestyle holds the style sheet that all pages of the project share: [CSS] comes before
// the styles of a page. [Write] writes a page that is a file.
package pagestyle

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"

	"github.com/faceauth/faceauth/internal/safefile"
)

//go:embed page.css
var css string

// CSS is the style sheet, for an element of a template.
var CSS = template.CSS(css)

// Funcs gives templates the style sheet under the name pagestyle, and [JPEG] under the name jpeg.
var Funcs = template.FuncMap{"pagestyle": func() template.CSS { return CSS }, "jpeg": JPEG}

// JPEG returns a picture as a URL.
func JPEG(picture []byte) template.URL {
	return template.URL("data:image/jpeg;base64," + base64.StdEncoding.EncodeToString(picture))
}

// doctype is the beginning of a page.
const doctype = "<!doctype html>"

// Write writes a page. It replaces only an older page, and never another file such as the gallery.
func Write(path string, t *template.Template, page any) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("writing the contact sheet: %w", err)
		}
	}()
	f, err := safefile.Open(path)
	if err == nil {
		head := make([]byte, len(doctype))
		_, err := io.ReadFull(f, head)
		f.Close()
		if err != nil || string(head) != doctype {
			return fmt.Errorf("%s exists and is not a page of this program; name another file",
				path)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, page); err != nil {
		return err
	}
	return safefile.Write(path, b.Bytes())
}
