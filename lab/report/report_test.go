// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/faceauth/faceauth/lab/report"
	"github.com/faceauth/faceauth/online"
)

var line = face.Space{ID: "line", Dim: 1, Scale: 1, Sigma: .2, Gamma: 1e-3}

// outcome evaluates two people on a line, and a stranger at a place.
func outcome(t *testing.T, strangers ...string) evaluate.Summary {
	t.Helper()
	at := func(x ...float32) (faces []evaluate.Face) {
		for _, x := range x {
			faces = append(faces, evaluate.Face{Vector: []float32{x}, Usable: true})
		}
		return faces
	}
	ids := []evaluate.Identity{
		{Name: "alice", Faces: at(0, .1, .2, .3, .4)},
		{Name: "<b>bob</b>", Faces: at(10, 10.1, 10.2)},
		{Name: "eve", Faces: at(.5, .6, 30)},
	}
	s := fixture.Must(evaluate.RunAll(context.Background(), ids,
		evaluate.Protocol{Enroll: 1, Stride: 1, Order: evaluate.Sequential}, [][]string{strangers},
		[]evaluate.Entry{evaluate.Learner(line, online.Settings{}), evaluate.Nearest(line)},
		nil))(t)
	return s
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	if err := report.Write(dir, outcome(t, "eve"), report.Meta{
		Source: "<i>hall</i>", Protocol: []string{"two of three"},
		Settings: []report.Setting{{Name: "sigma", Value: ".2"}},
		Warnings: []string{"beware"},
	}); err != nil {
		t.Fatal(err)
	}
	page := read(t, dir, "report.html")
	for _, want := range []string{
		"&lt;i&gt;hall&lt;/i&gt;", "two of three", "beware", "<td>sigma</td><td>.2</td>",
		"&lt;b&gt;bob&lt;/b&gt;",
		"The learner recognised 100.00 % of the faces of enrolled people and accepted 66.67 % of " +
			"the strangers&#39;.",
		"<td>FPIR</td><td>0.6667</td><td>2 of 3</td>", "eve (stranger)",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	// The page loads nothing, and no name becomes markup.
	for _, not := range []string{"<b>bob", "http://", "https://", "<script", "ZgotmplZ"} {
		if strings.Contains(page, not) {
			t.Errorf("the page has %q", not)
		}
	}
	pictures := regexp.MustCompile(`src="data:image/png;base64,[A-Za-z0-9+/=]{1000,}"`)
	if n := len(pictures.FindAllString(strings.ReplaceAll(page, "&#43;", "+"), -1)); n != 3 {
		t.Errorf("%d pictures, want 3", n)
	}
	for _, name := range []string{"det", "precision-recall", "recall-over-time"} {
		img, err := png.Decode(bytes.NewReader([]byte(read(t, dir, name+".png"))))
		if err != nil || img.Bounds().Dx() < 300 {
			t.Errorf("%s.png: %v", name, err)
		}
		svg := read(t, dir, name+".svg")
		if !strings.Contains(svg, "nearest") || strings.Contains(svg, "NaN") {
			t.Errorf("%s.svg lacks a method, or has no numbers", name)
		}
		for d := xml.NewDecoder(strings.NewReader(svg)); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s.svg: %v", name, err)
			}
		}
	}
}

// Without strangers there is no false match rate to draw.
func TestWriteWithoutStrangers(t *testing.T) {
	dir := t.TempDir()
	fixture.Check(t, report.Write(dir, outcome(t), report.Meta{}))
	if _, err := os.Stat(filepath.Join(dir, "det.png")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a DET curve without strangers: %v", err)
	}
	if page := read(t, dir, "report.html"); !strings.Contains(page, "there were no strangers") ||
		strings.Contains(page, "<td>FPIR</td>") {
		t.Error("the page has a false match rate")
	}
	if err := report.Write(filepath.Join(dir, "none"), outcome(t), report.Meta{}); !errors.Is(err,
		os.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
	if err := report.Write(dir, evaluate.Summary{}, report.Meta{}); err != nil {
		t.Errorf("without methods: %v", err)
	}
}

func TestFigure(t *testing.T) {
	for _, c := range []struct {
		r         evaluate.Rate
		low, high string
	}{{.99996, "0.9999", "1.0000"}, {1, "1.0000", "1.0000"}, {0, "0.0000", "0.0000"},
		{1e-9, "0.0000", "0.0001"},
		{evaluate.Rate(math.NaN()), "-", "-"}} {
		if l, h := report.Figure(c.r, math.Floor), report.Figure(c.r, math.Ceil); l != c.low ||
			h != c.high {
			t.Errorf("%g is written %s and %s, want %s and %s", float64(c.r), l, h, c.low, c.high)
		}
	}
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	b := fixture.Must(os.ReadFile(filepath.Join(dir, name)))(t)
	return string(b)
}
