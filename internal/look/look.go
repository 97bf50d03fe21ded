// Package look holds what all pages of the project look like: [CSS] comes before what a page adds.
package look

import (
	_ "embed"
	"html/template"
)

//go:embed look.css
var css string

// CSS is the style sheet, for an element of a template.
var CSS = template.CSS(css)

// Funcs gives templates the style sheet under the name look.
var Funcs = template.FuncMap{"look": func() template.CSS { return CSS }}
