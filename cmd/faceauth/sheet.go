// SPDX-License-Identifier: Apache-2.0

package main

import (
	"embed"
	"fmt"
	"html/template"
	"path/filepath"

	"github.com/faceauth/faceauth/internal/pagestyle"
	"github.com/faceauth/faceauth/internal/search"
)

//go:embed *.html.tmpl
var sheetFiles embed.FS

// sheets are the pages of the commands audit, confirm and search.
var sheets = template.Must(template.New("").Funcs(pagestyle.Funcs).Funcs(template.FuncMap{
	"percent": func(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) },
	"stamp":   stamp,
	"base":    filepath.Base,
	"link":    func(h search.Hit) template.URL { return template.URL(link(source(h), h.From)) },
}).ParseFS(sheetFiles, "*.html.tmpl"))

// writeSheet writes the page of a command.
func writeSheet(path, command string, page any) error {
	return pagestyle.Write(path, sheets.Lookup(command+".html.tmpl"), page)
}
