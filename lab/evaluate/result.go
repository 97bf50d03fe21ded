// SPDX-License-Identifier: Apache-2.0

package evaluate

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"time"
)

// Rate is a share in [0,1], or NaN without trials. NaN is null in JSON.
type Rate float64

// MarshalJSON writes the rate, or null.
func (r Rate) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(r)) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(r))
}

func rate(n, of int) Rate {
	if of == 0 {
		return Rate(math.NaN())
	}
	return Rate(float64(n) / float64(of))
}

// trial is one judged face.
type trial struct {
	person   string
	user     string // the enrolled person, if there is only one
	after    int    // faces since enrolment
	known    bool
	claim    string
	score    float64
	accepted bool
}

// correct reports whether the claim is right.
func (t trial) correct() bool { return t.known && t.claim == t.person }

// Point is an operating point.
type Point struct {
	Threshold float64 `json:"threshold"` // least accepted score, on the method's own scale
	Precision Rate    `json:"precision"`
	Recall    Rate    `json:"recall"`
	FAR       Rate    `json:"far"`
}

// Pairs counts pairs of an enrolled set and a stranger, and those in which the stranger was
// accepted at least once.
type Pairs struct {
	Total    int `json:"total"`
	Accepted int `json:"accepted"`
}

// Result is the result of one method.
type Result struct {
	Name      string `json:"name"`
	Precision Rate   `json:"precision"`
	Recall    Rate   `json:"recall"`
	FAR       Rate   `json:"far"`
	// largest recall of a threshold that accepts no stranger
	RecallAtFAR0 Rate `json:"recall_at_far0"`
	// largest recall of a threshold with a FAR of at most .001
	RecallAtFAR001 Rate    `json:"recall_at_far001"`
	MSPerStep      float64 `json:"ms_per_step"`
	// PrecisionAtRecall is the best precision of a threshold with at least the recall of the first
	// method.
	PrecisionAtRecall Rate `json:"precision_at_recall"`
	// FMR and FNMR are the error rates of a verification, with one enrolled person in each run;
	// else nil.
	FMR  *ErrorRate `json:"fmr,omitempty"`
	FNMR *ErrorRate `json:"fnmr,omitempty"`
	// FPIR and FNIR are the error rates of an identification, with several enrolled people; else
	// nil.
	FPIR *ErrorRate `json:"fpir,omitempty"`
	FNIR *ErrorRate `json:"fnir,omitempty"`
	// Pairs counts strangers once for each run. With one enrolled user in each run, these are pairs
	// of people.
	Pairs     Pairs     `json:"pairs"`
	Curve     []Point   `json:"curve"`
	Confusion Confusion `json:"confusion"`
	OverTime  []Period  `json:"over_time"`
	// PassedOver counts the faces that the method did not learn for lack of room, in all runs.
	PassedOver int64 `json:"passed_over"`

	trials  []trial
	steps   int // faces judged, with those that are not counted
	elapsed time.Duration
}

// NamedRate is an error rate and its name in ISO/IEC 19795-1.
type NamedRate struct {
	Name string
	ErrorRate
}

// ErrorRates returns the rate of accepted strangers' faces, and the rate of enrolled people's faces
// that were not accepted under their name: FMR and FNMR, or FPIR and FNIR. It returns nil without
// runs.
func (r Result) ErrorRates() []NamedRate {
	switch {
	case r.FMR != nil && r.FNMR != nil:
		return []NamedRate{{"FMR", *r.FMR}, {"FNMR", *r.FNMR}}
	case r.FPIR != nil && r.FNIR != nil:
		return []NamedRate{{"FPIR", *r.FPIR}, {"FNIR", *r.FNIR}}
	}
	return nil
}

// Pool returns the result of all attempts of several runs of one method together. Precision, recall
// and FAR are over all attempts. Rates at a threshold chosen afterwards are means over the runs,
// because each run has its own threshold. The curve has one threshold for all.
func Pool(name string, runs []Result) Result {
	pool := Result{Name: name}
	var far0, far001, at mean
	for _, r := range runs {
		pool.trials = append(pool.trials, r.trials...)
		pool.steps += r.steps
		pool.PassedOver += r.PassedOver
		pool.Pairs.Total += r.Pairs.Total
		pool.Pairs.Accepted += r.Pairs.Accepted
		pool.elapsed += r.elapsed
		far0.add(r.RecallAtFAR0)
		far001.add(r.RecallAtFAR001)
		at.add(r.PrecisionAtRecall)
	}
	pool.sumUp(pool.points())
	all := pool.operating()
	pool.Precision, pool.Recall, pool.FAR = all.Precision, all.Recall, all.FAR
	pool.RecallAtFAR0, pool.RecallAtFAR001, pool.PrecisionAtRecall = far0.rate(), far001.rate(),
		at.rate()
	return pool
}

// conclude computes the rates from the trials. With hindsight it also chooses the threshold. First
// is the result of the first method.
func (r *Result) conclude(hindsight bool, first Result) {
	own, reference := r.operating(), first.operating()
	all := r.points()
	if hindsight {
		limit := reference.FAR
		if math.IsNaN(float64(limit)) {
			limit = 1
		}
		own = Point{Threshold: math.Inf(1), Precision: rate(0, 0), FAR: own.FAR}
		for _, p := range all {
			if !(p.FAR > limit) && p.Recall > own.Recall {
				own = p
			}
		}
		for i := range r.trials {
			t := &r.trials[i]
			t.accepted = t.claim != "" && t.score >= own.Threshold
		}
		own = r.operating()
	}
	r.Precision, r.Recall, r.FAR = own.Precision, own.Recall, own.FAR
	r.PrecisionAtRecall = rate(0, 0)
	for _, p := range all {
		if p.Recall >= reference.Recall && !(p.Precision <= r.PrecisionAtRecall) {
			r.PrecisionAtRecall = p.Precision
		}
	}
	r.sumUp(all)
	accepted := r.ErrorRates()[0]
	r.Pairs = Pairs{accepted.People, accepted.PeopleWrong}
}

// sumUp computes the rates that do not depend on another method, of one or several runs. All has
// the operating points of all thresholds.
func (r *Result) sumUp(all []Point) {
	r.RecallAtFAR0, r.RecallAtFAR001 = best(all, 0), best(all, .001)
	accepted := errorRate(r.trials, func(t trial) (counts, wrong bool) {
		return !t.known, t.accepted
	})
	missed := errorRate(r.trials, func(t trial) (counts, wrong bool) {
		return t.known, !t.accepted || !t.correct()
	})
	if slices.ContainsFunc(r.trials, func(t trial) bool { return t.user == "" }) {
		r.FPIR, r.FNIR = &accepted, &missed
	} else {
		r.FMR, r.FNMR = &accepted, &missed
	}
	r.Confusion = confusion(r.trials)
	r.OverTime = overTime(r.trials)
	r.Curve = thin(all)
	r.MSPerStep = 0
	if r.steps > 0 {
		r.MSPerStep = r.elapsed.Seconds() * 1000 / float64(r.steps)
	}
}

// operating returns the operating point of the trials as accepted.
func (r *Result) operating() Point {
	var correct, accepted, strangers, known, n int
	for _, t := range r.trials {
		if t.known {
			known++
		} else {
			n++
		}
		if t.accepted {
			accepted++
			if t.correct() {
				correct++
			}
			if !t.known {
				strangers++
			}
		}
	}
	return Point{Precision: rate(correct, accepted), Recall: rate(correct, known),
		FAR: rate(strangers, n)}
}

// points returns the operating points of all thresholds, strictest first.
func (r *Result) points() []Point {
	claims := make([]trial, 0, len(r.trials))
	known, strangers := 0, 0
	for _, t := range r.trials {
		if t.known {
			known++
		} else {
			strangers++
		}
		if t.claim != "" {
			claims = append(claims, t)
		}
	}
	slices.SortFunc(claims, func(a, b trial) int { return cmp.Compare(b.score, a.score) })
	var points []Point
	var correct, falseAccepts int
	for i, t := range claims {
		if t.correct() {
			correct++
		}
		if !t.known {
			falseAccepts++
		}
		// equal scores are accepted together
		if i+1 == len(claims) || claims[i+1].score != t.score {
			points = append(points,
				Point{t.score, rate(correct, i+1), rate(correct, known),
					rate(falseAccepts, strangers)})
		}
	}
	return points
}

// ThresholdAt returns the least threshold at which the share of accepted strangers' faces does not
// exceed far, and its operating point. The threshold is 0 if every claim may be accepted, and else
// the middle between the last accepted score and the next. If no threshold is strict enough,
// nothing is accepted: the point has a recall of 0.
func (r Result) ThresholdAt(far float64) (threshold float64, at Point) {
	points := r.points()
	last := -1
	for i, p := range points {
		if !(float64(p.FAR) > far) {
			last = i
		}
	}
	switch {
	case last < 0 && len(points) > 0:
		return math.Nextafter(points[0].Threshold, math.Inf(1)),
			Point{Threshold: points[0].Threshold}
	case last+1 < len(points):
		return (points[last].Threshold + points[last+1].Threshold) / 2, points[last]
	case last < 0:
		return 0, Point{}
	}
	return 0, points[last]
}

// best returns the largest recall of the points with at most this FAR. Without strangers all points
// count.
func best(points []Point, far Rate) Rate {
	var r Rate
	for _, p := range points {
		if !(p.FAR > far) {
			r = max(r, p.Recall)
		}
	}
	return r
}

// thin leaves out points that look the same as their neighbours on a curve, with linear axes or a
// logarithmic axis for FAR.
func thin(points []Point) []Point {
	var t []Point
	for i, p := range points {
		if i > 0 && i+1 < len(points) && near(p, t[len(t)-1]) && near(points[i+1], t[len(t)-1]) {
			continue
		}
		t = append(t, p)
	}
	return t
}

// near reports whether two points look the same.
func near(p, q Point) bool {
	close := func(a, b Rate) bool { return !(math.Abs(float64(a-b)) > .004) }
	return close(p.Recall, q.Recall) && close(p.Precision, q.Precision) && close(p.FAR, q.FAR) &&
		!(math.Abs(float64(p.FAR-q.FAR)) > .1*float64(q.FAR))
}
