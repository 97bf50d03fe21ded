// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/pagestyle"
)

// Setting is one line of the settings that a page lists.
type Setting struct{ Name, Value string }

// Meta describes the recording for the page.
type Meta struct {
	Source   string // name of the recording
	Path     string // of its file, absolute, for links to moments; "" if it has none
	Count    face.Count
	Settings []Setting
	Warnings []string
}

//go:embed page.html.tmpl
var pageText string

var pageTemplate = template.Must(template.New("page").Funcs(pagestyle.Funcs).Parse(pageText))

// axis is the length of the time axis, in units of the drawing.
const axis = 1000.

type page struct {
	Meta
	Summary
	Headline string
	Clock    string
	Cut      string // where it is cut off; "" if it is not
	Lanes    []lane
	Ticks    []tick
	Reasons  string
	Refused  string
}

type lane struct {
	Near     string // the distance in words, "" for the unknown
	Name     string
	Class    string // of the colour
	Summary  PersonSummary
	Span     string
	Bars     []bar
	Pictures []shown
}

type bar struct{ X, Width float64 }

type tick struct {
	X     float64
	Label string
}

type shown struct {
	JPEG []byte
	Text string
	Link template.URL // to the moment of the recording, or to the photograph; "" for none
}

// WriteHTML writes the report as one page that needs no other files.
func (r *Report) WriteHTML(w io.Writer, m Meta) error {
	s := r.Summary()
	p := page{Meta: m, Summary: s, Headline: headline(s), Clock: clock(s.Duration),
		Reasons: Tally(s.Reasons), Refused: Tally(s.Refused)}
	if m.Count.Cut() {
		p.Cut = fmt.Sprintf("It ends at %s of %s: it is cut off.", clock(m.Count.Last.Seconds()),
			clock(m.Count.Length.Seconds()))
	}
	columns := int(r.end/r.width) + 1
	for i, ps := range s.People {
		l := r.people[ps.Name].lane(columns, m.Path)
		l.Name, l.Summary, l.Class, l.Near = ps.Name, ps, fmt.Sprintf("c%d", i%6), ps.near()
		p.Lanes = append(p.Lanes, l)
	}
	if u := r.people[""]; u != nil {
		l := u.lane(columns, m.Path)
		l.Name, l.Summary, l.Class = "unknown", s.Unknown, "unknown"
		p.Lanes = append(p.Lanes, l)
	}
	if n := sum(s.Refused); n > 0 {
		l := lane{Name: "poor picture", Class: "poor", Summary: PersonSummary{Faces: n}}
		l.Bars = r.poor.bars(columns)
		p.Lanes = append(p.Lanes, l)
	}
	p.Ticks = ticks(r.end, r.width*time.Duration(columns))
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, p); err != nil {
		return fmt.Errorf("writing report: %w", err)
	}
	_, err := b.WriteTo(w)
	return err
}

func headline(s Summary) string {
	if s.Faces == 0 {
		return "No face was found."
	}
	var names []string
	for _, p := range s.People {
		names = append(names, p.Name)
	}
	var who string
	switch n := len(names); n {
	case 0:
		who = "Nobody was recognised"
	case 1:
		who = names[0] + " was recognised"
	default:
		who = strings.Join(names[:n-1], ", ") + " and " + names[n-1] + " were recognised"
	}
	if s.Unknown.Faces == 0 {
		return who + "; nobody unknown was seen."
	}
	return fmt.Sprintf("%s; %s of %d belonged to nobody known.", who,
		plural(s.Unknown.Faces, "face"), s.Faces)
}

func (p *person) lane(columns int, path string) lane {
	l := lane{Span: clock(p.First.Seconds()) + " to " + clock(p.Last.Seconds()),
		Bars: p.Line.bars(columns)}
	for _, s := range p.spread() {
		at := clock(s.At.Seconds())
		if s.File != "" {
			at = s.File
		}
		if s.Measured {
			at = fmt.Sprintf("%s · %.2f", at, s.Distance)
		}
		l.Pictures = append(l.Pictures, shown{JPEG: s.JPEG, Text: at, Link: s.link(path)})
	}
	return l
}

// link returns the address of a moment of a film, or of a photograph.
func (p picture) link(path string) template.URL {
	if path == "" {
		return ""
	}
	u := url.URL{Scheme: "file", Path: path}
	switch {
	case p.File != "" && filepath.Base(path) != p.File:
		u.Path = filepath.Join(path, p.File)
	case p.File == "":
		u.Fragment = fmt.Sprintf("t=%.0f", math.Floor(p.At.Seconds()))
	}
	return template.URL(u.String())
}

// bars returns a rectangle for each run of bins with faces.
func (t timeline) bars(columns int) []bar {
	var bars []bar
	w := axis / float64(columns)
	for i := 0; i < len(t); i++ {
		if t[i] == 0 {
			continue
		}
		j := i
		for j < len(t) && t[j] > 0 {
			j++
		}
		bars = append(bars, bar{X: round(float64(i) * w), Width: round(max(float64(j-i)*w, 1.5))})
		i = j
	}
	return bars
}

func round(x float64) float64 { return float64(int(x*10+.5)) / 10 }

// ticks returns at most ten marks on the time axis, at round times.
func ticks(end, width time.Duration) []tick {
	step := time.Second
	for _, n := range []time.Duration{1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600,
		43200, 86400} {
		step = n * time.Second
		if end/step <= 9 {
			break
		}
	}
	for end/step > 9 {
		step *= 2
	}
	var t []tick
	for at := time.Duration(0); at <= end; at += step {
		label := fmt.Sprintf("%d:%02d", int(at.Minutes()), int(at.Seconds())%60)
		if end >= time.Hour {
			label = fmt.Sprintf("%d:%02d h", int(at.Hours()), int(at.Minutes())%60)
		}
		t = append(t, tick{round(axis * float64(at) / float64(width)), label})
	}
	return t
}
