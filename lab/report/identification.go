// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/faceauth/faceauth/lab/figure"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
)

// identificationPage is what the page of an identification shows.
type identificationPage struct {
	Meta
	evaluate.Identified
	Headline string
	Figures  []shown
}

// WriteIdentification writes report.html and the curve of an identification (identification.png and
// .svg) into an existing folder. Without strangers there is no curve. Each file is written as a
// whole.
func WriteIdentification(dir string, s evaluate.Identified, m Meta) error {
	var all []drawing
	if s.Counts.NonMated > 0 {
		all = append(all, drawing{
			"identification", "False negative over false positive identification, on the scale " +
				"of normal deviates: further " +
				"to the bottom left is better. A rate below the edge of the drawing, 0 for one, " +
				"is drawn at the edge.",
			func() (*plot.Plot, error) { return identificationTradeOff(s) },
		})
	}
	shown, err := writeFigures(dir, all)
	if err != nil {
		return err
	}
	page := identificationPage{Meta: m, Identified: s, Headline: identificationHeadline(s),
		Figures: shown}
	return writePage(dir, "identification.html.tmpl", page)
}

// identificationTradeOff draws FNIR over FPIR.
func identificationTradeOff(s evaluate.Identified) (*plot.Plot, error) {
	var all []figure.Line
	for i, m := range s.Methods {
		var points plotter.XYs
		for _, q := range m.Curve {
			if q.FPIR <= widest {
				points = append(points, plotter.XY{X: float64(q.FPIR), Y: 1 - float64(q.TPIR)})
			}
		}
		if len(points) > 0 {
			all = append(all, line(i, m.Name, points))
		}
	}
	return tradeOff("false positive identification rate", "false negative identification rate",
		max(s.Counts.Mated, s.Counts.NonMated), all)
}

// identificationHeadline gives the result of the first method, at the first bound that could be
// measured.
func identificationHeadline(s evaluate.Identified) string {
	if len(s.Methods) == 0 {
		return "Nothing was measured."
	}
	m := s.Methods[0]
	for _, p := range m.Points {
		if p.Operating == nil {
			continue
		}
		return fmt.Sprintf("%s, with %s.", named(m.Name, p.Operating.TPIR), Bound(p.Target))
	}
	return named(m.Name, m.Rank1.TPIR) + "; there were no strangers."
}

func named(method string, tpir evaluate.Rate) string {
	return fmt.Sprintf("The %s named %.2f %% of the mated probes rightly", method,
		math.Floor(1e4*float64(tpir))/100)
}

// Bound describes the allowed FPIR in words.
func Bound(fpir float64) string {
	if fpir == 0 {
		return "no false positive"
	}
	return fmt.Sprintf("an FPIR of at most %s %%", strconv.FormatFloat(100*fpir, 'g', 6, 64))
}

// Threshold writes a threshold; nil means none.
func Threshold(t *float64) string {
	if t == nil {
		return "none"
	}
	return strconv.FormatFloat(*t, 'f', 4, 64)
}

// Reasons lists the numbers of refused faces by reason, in brackets, or returns "".
func Reasons(faces map[face.Reason]int) string {
	if len(faces) == 0 {
		return ""
	}
	var all []string
	for _, reason := range slices.Sorted(maps.Keys(faces)) {
		all = append(all, fmt.Sprintf("%s: %d", reason, faces[reason]))
	}
	return " (" + strings.Join(all, ", ") + ")"
}

// NotMeasured returns a sentence for each bound that could not be measured, with the number of
// probes that it needs.
func NotMeasured(s evaluate.Identified) (sentences []string) {
	if len(s.Methods) == 0 {
		return nil
	}
	if s.Counts.NonMated == 0 {
		return []string{"no FPIR is shown: there are no non-mated probes; " +
			"it takes people with no more faces than are enrolled, or who are named as strangers"}
	}
	for _, p := range s.Methods[0].Points {
		if p.Operating == nil {
			sentences = append(sentences, fmt.Sprintf(
				"an FPIR of %s %% is not shown: it takes at least %d non-mated probes, and there "+
					"are %d",
				strconv.FormatFloat(100*p.Target, 'g', 6, 64), p.Needed, s.Counts.NonMated))
		}
	}
	return sentences
}
