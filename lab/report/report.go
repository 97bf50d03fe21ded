// SPDX-License-Identifier: Apache-2.0

// Package report draws the result of an evaluation: curves as PNG and SVG, and one page that
// compares all methods and needs no network.
//
// Use [Write], or [WriteIdentification] for an identification.
package report

import (
	"bytes"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"math"
	"path/filepath"
	"strconv"

	"github.com/faceauth/faceauth/internal/pagestyle"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/faceauth/faceauth/lab/evaluate"
)

// Setting is one line of the settings that a page lists.
type Setting struct{ Name, Value string }

// Meta is the text of a page beside the figures.
type Meta struct {
	Source   string   // name of the folder of recordings
	Protocol []string // sentences that say who was enrolled, and which faces were judged
	Settings []Setting
	Warnings []string
}

//go:embed *.html.tmpl
var pageFiles embed.FS

var pages = template.Must(template.New("").Funcs(template.FuncMap{
	"low":       func(r evaluate.Rate) string { return Figure(r, math.Floor) },
	"high":      func(r evaluate.Rate) string { return Figure(r, math.Ceil) },
	"interval":  Span,
	"threshold": Threshold,
	"reasons":   Reasons,
	"percent": func(fpir float64) string {
		return strconv.FormatFloat(100*fpir, 'g', 6, 64) + " %"
	},
}).Funcs(pagestyle.Funcs).ParseFS(pageFiles, "*.html.tmpl"))

type page struct {
	Meta
	evaluate.Summary
	Headline string
	Figures  []shown
}

// shown is one picture on the page.
type shown struct {
	URL           template.URL
	Name, Caption string
}

// Figure writes a rate with four places. Round is the rounding function: a figure must not look
// better than it is. Without trials it returns "-".
func Figure(r evaluate.Rate, round func(float64) float64) string {
	if math.IsNaN(float64(r)) {
		return "-"
	}
	return fmt.Sprintf("%.4f", round(float64(r)*1e4)/1e4)
}

// Span writes an interval. Rounding makes it wider.
func Span(i evaluate.Interval) string {
	return Figure(evaluate.Rate(i.Low), math.Floor) + " to " +
		Figure(evaluate.Rate(i.High), math.Ceil)
}

// Write writes report.html and the curves det, precision-recall and recall-over-time (.png and
// .svg) into an existing folder. Without strangers there is no det. Each file is written as a
// whole.
func Write(dir string, s evaluate.Summary, m Meta) error {
	shown, err := writeFigures(dir, figures(s))
	if err != nil {
		return err
	}
	return writePage(dir, "page.html.tmpl",
		page{Meta: m, Summary: s, Headline: headline(s), Figures: shown})
}

// writeFigures writes figures into a folder, and returns them for a page.
func writeFigures(dir string, all []drawing) (pictures []shown, err error) {
	for _, f := range all {
		var png, svg bytes.Buffer
		if err := f.draw(&png, &svg); err != nil {
			return nil, fmt.Errorf("drawing %s: %w", f.name, err)
		}
		for ending, b := range map[string]*bytes.Buffer{".png": &png, ".svg": &svg} {
			if err := safefile.Write(filepath.Join(dir, f.name+ending), b.Bytes()); err != nil {
				return nil, fmt.Errorf("writing report: %w", err)
			}
		}
		pictures = append(pictures, shown{
			URL: template.URL("data:image/png;base64," +
				base64.StdEncoding.EncodeToString(png.Bytes())),
			Name: f.name, Caption: f.caption,
		})
	}
	return pictures, nil
}

// writePage writes report.html into a folder.
func writePage(dir, name string, data any) error {
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, name, data); err != nil {
		return fmt.Errorf("writing report: %w", err)
	}
	if err := safefile.Write(filepath.Join(dir, "report.html"), b.Bytes()); err != nil {
		return fmt.Errorf("writing report: %w", err)
	}
	return nil
}

// headline gives the result of the first method.
func headline(s evaluate.Summary) string {
	if len(s.Methods) == 0 {
		return "Nothing was measured."
	}
	m := s.Methods[0]
	text := fmt.Sprintf("The %s recognised %.2f %% of the faces of enrolled people", m.Name,
		math.Floor(1e4*float64(m.Recall))/100)
	if math.IsNaN(float64(m.FAR)) {
		return text + "; there were no strangers."
	}
	return fmt.Sprintf("%s and accepted %.2f %% of the strangers'.", text,
		math.Ceil(1e4*float64(m.FAR))/100)
}
