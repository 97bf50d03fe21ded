// SPDX-License-Identifier: Apache-2.0

// Package pagestyle holds the style sheet that all pages of the project share: [CSS] comes before the styles of a page.
package pagestyle

import (
	_ "embed"
	"encoding/base64"
	"html/template"
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
