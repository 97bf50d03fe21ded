// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"context"
	"errors"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/faceauth/faceauth/lab/report"
	"github.com/faceauth/faceauth/online"
)

// identified is an identification of two people on a line. Each stranger has a place of its own,
// and far adds a hundred and one strangers who are far away.
func identified(t *testing.T, far bool, strangers ...float32) evaluate.Identified {
	t.Helper()
	at := func(usable bool, x ...float32) (faces []evaluate.Face) {
		for _, x := range x {
			faces = append(faces, evaluate.Face{Vector: []float32{x}, Usable: usable})
		}
		return faces
	}
	ids := []evaluate.Identity{
		{Name: "alice", Faces: at(true, 0, .1, .2, 20), Undetected: 1},
		{Name: "<b>bob</b>", Faces: at(true, 10, 10.1), Several: 1},
		{Name: "<i>hal</i>", Faces: at(false, 30, 31),
			Refused: map[face.Reason]int{face.TooDark: 1, face.Blurred: 1}},
		{Name: "<u>ida</u>", Undetected: 1},
	}
	if far {
		for i := range 101 {
			strangers = append(strangers, 100+float32(i))
		}
	}
	for i, x := range strangers {
		ids = append(ids, evaluate.Identity{Name: string(rune('A' + i)), Faces: at(true, x)})
	}
	p := evaluate.Identification{Protocol: evaluate.Protocol{Enroll: 1, Stride: 1}}
	s := fixture.Must(evaluate.Identify(context.Background(), ids, p,
		[]evaluate.Entry{evaluate.Learner(line, online.Settings{}), evaluate.Nearest(line)}))(t)
	return s
}

func TestWriteIdentification(t *testing.T) {
	dir := t.TempDir()
	s := identified(t, true, .05)
	if err := report.WriteIdentification(dir, s, report.Meta{
		Source: "<i>hall</i>", Protocol: []string{"two of four"}, Warnings: report.NotMeasured(s),
		Settings: []report.Setting{{Name: "sigma", Value: ".2"}},
	}); err != nil {
		t.Fatal(err)
	}
	page := read(t, dir, "report.html")
	for _, want := range []string{
		"&lt;i&gt;hall&lt;/i&gt;", "two of four", "<td>sigma</td><td>.2</td>",
		"&lt;i&gt;hal&lt;/i&gt;", "&lt;u&gt;ida&lt;/u&gt;",
		// One false positive of 102 is allowed by a bound of 1 %. Alice's 20 has no edge to
		// anybody.
		"The learner named 75.00 % of the mated probes rightly, with an FPIR of at most 1 %.",
		`<tr><th scope="row">learner</th><td>any</td><td>none</td><td>3 of 4</td><td>0.7500</td>`,
		`<tr><th scope="row">learner</th><td>1 %</td><td>none</td><td>3 of 4</td><td>0.7500</td>` +
			`<td>0.0608 to 0.9998</td><td>0</td><td>1 of 2</td>`,
		"<td>1 of 102</td><td>0.0099</td>",
		"an FPIR of 0.1 % is not shown: it takes at least 1000 non-mated probes, and there are 102",
		"not shown: it takes 1000 non-mated probes",
		`<tr><th scope="row">nearest</th><td>0 %</td>`,
		"<td>1, with 2 faces (blurred: 1, too dark: 1)<br>&lt;i&gt;hal&lt;/i&gt;</td>",
		"<td>frames without a face</td><td>2 of 112</td>",
		"<td>frames with several faces, of which the largest counts</td><td>1</td>",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, not := range []string{"<b>bob", "<i>hal<", "<u>ida", "http://", "https://", "<script",
		"ZgotmplZ", "NaN"} {
		if strings.Contains(page, not) {
			t.Errorf("the page has %q", not)
		}
	}
	if n := strings.Count(page, "<figure>"); n != 1 {
		t.Errorf("%d pictures, want 1", n)
	}
	img, err := png.Decode(strings.NewReader(read(t, dir, "identification.png")))
	if err != nil || img.Bounds().Dx() < 300 {
		t.Errorf("identification.png: %v", err)
	}
	svg := read(t, dir, "identification.svg")
	if !strings.Contains(svg, "nearest") ||
		!strings.Contains(svg, "false negative identification rate") {
		t.Error("identification.svg lacks a method or an axis")
	}
	if strings.Contains(svg, "NaN") {
		t.Error("identification.svg has no numbers")
	}
	if err := report.WriteIdentification(filepath.Join(dir, "none"), s,
		report.Meta{}); !errors.Is(err,
		os.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
	if err := report.WriteIdentification(dir, evaluate.Identified{}, report.Meta{}); err != nil {
		t.Errorf("without methods: %v", err)
	}
}

// Without strangers there is no false positive to draw. With few strangers there is only the
// strictest bound.
func TestWriteIdentificationOfFew(t *testing.T) {
	for _, c := range []struct {
		strangers []float32
		headline  string
		measured  []string
	}{
		{nil, "The learner named 75.00 % of the mated probes rightly; there were no strangers.",
			[]string{"no FPIR is shown: there are no non-mated probes; " +
				"it takes people with no more faces than are enrolled, or who are named as " +
				"strangers"}},
		{[]float32{.05},
			"The learner named 0.00 % of the mated probes rightly, with no false positive.",
			[]string{"an FPIR of 1 % is not shown: it takes at least 100 non-mated probes, and " +
				"there are 1",
				"an FPIR of 0.1 % is not shown: it takes at least 1000 non-mated probes, and " +
					"there are 1"}},
	} {
		dir := t.TempDir()
		s := identified(t, false, c.strangers...)
		fixture.Check(t, report.WriteIdentification(dir, s, report.Meta{}))
		if page := read(t, dir, "report.html"); !strings.Contains(page, c.headline) ||
			strings.Contains(page, "NaN") {
			t.Errorf("the page lacks %q", c.headline)
		}
		_, err := os.Stat(filepath.Join(dir, "identification.png"))
		if errors.Is(err, os.ErrNotExist) != (c.strangers == nil) {
			t.Errorf("strangers %v: curve %v", c.strangers, err)
		}
		if got := report.NotMeasured(s); !slices.Equal(got, c.measured) {
			t.Errorf("strangers %v: %q", c.strangers, got)
		}
	}
}
