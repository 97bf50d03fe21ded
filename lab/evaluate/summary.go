// SPDX-License-Identifier: Apache-2.0

package evaluate

import (
	"context"
	"math"
	"slices"
	"strings"
)

// Summary is the result of one protocol, or of all runs with several choices of strangers.
type Summary struct {
	Runs    int      `json:"runs"`
	Faces   Counts   `json:"faces"` // summed over the runs, except Undetected
	Methods []Result `json:"methods"`
	Worst   []Worst  `json:"worst,omitempty"` // for each method, if there are several runs
}

// Worst is the worst run of a method.
type Worst struct {
	Name      string `json:"name"`
	Recall    Rate   `json:"recall"`
	RecallRun string `json:"recall_run"` // "strangers a,b" or, if nobody else is enrolled, "user c"
	FAR       Rate   `json:"far"`
	FARRun    string `json:"far_run"`
}

// RunAll runs p for each choice of strangers and adds up the attempts of all runs, as [Pool] does.
// Progress, if it is not nil, is called before each run.
func RunAll(ctx context.Context, ids []Identity, p Protocol, choices [][]string, methods []Entry,
	progress func(done int)) (Summary, error) {
	s := Summary{Runs: len(choices)}
	var runs [][]Result
	for i, strangers := range choices {
		if err := ctx.Err(); err != nil {
			return s, err
		}
		if progress != nil {
			progress(i)
		}
		p.Strangers = strangers
		counts, results, err := run(ctx, ids, p, methods)
		if err != nil {
			return s, err
		}
		s.Faces.Enrolled += counts.Enrolled
		s.Faces.Adaptation += counts.Adaptation
		s.Faces.Known += counts.Known
		s.Faces.Strangers += counts.Strangers
		s.Faces.Undetected = counts.Undetected
		runs = append(runs, results)
	}
	if len(runs) == 1 {
		s.Methods = runs[0]
		return s, nil
	}
	for m, e := range methods {
		w := Worst{Name: e.Name, Recall: 1, FAR: rate(0, 0)}
		var all []Result
		for i, results := range runs {
			r := results[m]
			all = append(all, r)
			if r.Recall <= w.Recall {
				w.Recall, w.RecallRun = r.Recall, runName(ids, choices[i])
			}
			if !(r.FAR <= w.FAR) {
				w.FAR, w.FARRun = r.FAR, runName(ids, choices[i])
			}
		}
		s.Methods = append(s.Methods, Pool(e.Name, all))
		s.Worst = append(s.Worst, w)
	}
	return s, nil
}

// runName names the run with these strangers.
func runName(ids []Identity, strangers []string) string {
	if len(strangers) == len(ids)-1 {
		for _, id := range ids {
			if !slices.Contains(strangers, id.Name) {
				return "user " + id.Name
			}
		}
	}
	return "strangers " + strings.Join(strangers, ",")
}

// mean averages rates that are numbers.
type mean struct {
	sum float64
	n   int
}

func (m *mean) add(r Rate) {
	if !math.IsNaN(float64(r)) {
		m.sum += float64(r)
		m.n++
	}
}

func (m *mean) rate() Rate {
	if m.n == 0 {
		return rate(0, 0)
	}
	return Rate(m.sum / float64(m.n))
}
