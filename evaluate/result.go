package evaluate

import (
	"encoding/json"
	"math"
	"slices"
	"time"
)

// Rate is a share in [0,1], or NaN where there was no trial; NaN is null in JSON.
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

// Point is an operating point.
type Point struct {
	Threshold float64 `json:"threshold"` // least score that is accepted, on the method's own scale
	Precision Rate    `json:"precision"`
	Recall    Rate    `json:"recall"`
	FAR       Rate    `json:"far"`
}

// People counts the strangers who were accepted at least once. It is a count of independent trials, as
// faces of one person are not.
type People struct {
	Total    int      `json:"total"`
	Accepted int      `json:"accepted"`
	Interval Interval `json:"interval"` // of the share of people who are accepted at least once, 95 %
}

// Result is how one method did.
type Result struct {
	Name           string  `json:"name"`
	Precision      Rate    `json:"precision"`
	Recall         Rate    `json:"recall"`
	FAR            Rate    `json:"far"`
	RecallAtFAR0   Rate    `json:"recall_at_far0"`   // the best of any threshold that accepts no stranger
	RecallAtFAR001 Rate    `json:"recall_at_far001"` // the best of any threshold with a FAR of at most .001
	MSPerStep      float64 `json:"ms_per_step"`
	// PrecisionAtRecall is the best precision of any threshold with at least the recall of the first
	// method.
	PrecisionAtRecall Rate    `json:"precision_at_recall"`
	Curve             []Point `json:"curve"`
	Strangers         People  `json:"strangers"`

	people  map[string]bool // strangers, and whether a face of theirs was accepted
	trials  []trial
	elapsed time.Duration
}

// conclude computes the figures from the trials. First is the result of the first method.
func (r *Result) conclude(hindsight bool, first Result) {
	own, reference := r.operating(), first.operating()
	all := r.points()
	r.RecallAtFAR0 = best(all, 0)
	r.RecallAtFAR001 = best(all, .001)
	if hindsight {
		limit := reference.FAR
		if math.IsNaN(float64(limit)) {
			limit = 1
		}
		own = Point{Precision: rate(0, 0), Recall: 0, FAR: own.FAR}
		for _, p := range all {
			if !(p.FAR > limit) && p.Recall > own.Recall {
				own = p
			}
		}
	}
	r.Precision, r.Recall, r.FAR = own.Precision, own.Recall, own.FAR
	r.people = make(map[string]bool)
	for _, t := range r.trials {
		accepted := t.accepted
		if hindsight {
			accepted = t.claimed && own.Recall > 0 && t.score >= own.Threshold
		}
		if !t.known {
			r.people[t.person] = r.people[t.person] || accepted
		}
	}
	r.count()
	r.PrecisionAtRecall = rate(0, 0)
	for _, p := range all {
		if p.Recall >= reference.Recall && !(p.Precision <= r.PrecisionAtRecall) {
			r.PrecisionAtRecall = p.Precision
		}
	}
	r.MSPerStep = 0
	if len(r.trials) > 0 {
		r.MSPerStep = r.elapsed.Seconds() * 1000 / float64(len(r.trials))
	}
	r.Curve = thin(all, 101)
}

// count sums up the people.
func (r *Result) count() {
	r.Strangers = People{Total: len(r.people)}
	for _, accepted := range r.people {
		if accepted {
			r.Strangers.Accepted++
		}
	}
	r.Strangers.Interval = ClopperPearson(r.Strangers.Accepted, r.Strangers.Total)
}

// operating returns the point at which the method itself accepts.
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
			if t.correct {
				correct++
			}
			if !t.known {
				strangers++
			}
		}
	}
	return Point{Precision: rate(correct, accepted), Recall: rate(correct, known), FAR: rate(strangers, n)}
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
		if t.claimed {
			claims = append(claims, t)
		}
	}
	slices.SortFunc(claims, func(a, b trial) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return 0
	})
	var points []Point
	var correct, false_ int
	for i, t := range claims {
		if t.correct {
			correct++
		}
		if !t.known {
			false_++
		}
		if i+1 == len(claims) || claims[i+1].score != t.score { // equal scores stand or fall together
			points = append(points, Point{t.score, rate(correct, i+1), rate(correct, known), rate(false_, strangers)})
		}
	}
	return points
}

// best returns the largest recall of the points with at most that FAR. Without strangers every point
// will do.
func best(points []Point, far Rate) Rate {
	var r Rate
	for _, p := range points {
		if !(p.FAR > far) {
			r = max(r, p.Recall)
		}
	}
	return r
}

// thin returns at most n of the points, spread evenly and with both ends.
func thin(points []Point, n int) []Point {
	if len(points) <= n {
		return points
	}
	t := make([]Point, n)
	for i := range t {
		t[i] = points[i*(len(points)-1)/(n-1)]
	}
	return t
}
