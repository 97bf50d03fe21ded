package online

import "sort"

// Verdict is what a learner makes of one face.
type Verdict struct {
	Label      string  `json:"label"`            // a person's name, or "" for unknown
	Best       string  `json:"best,omitempty"`   // whose value is largest, also where that was not enough; "" where nobody's is
	Confidence float64 `json:"confidence"`       // harmonic value of the best person in [0,1], also where that was not enough
	Sink       float64 `json:"sink"`             // mass of the sink: 1 minus the values of all people
	Reason     Reason  `json:"reason,omitempty"` // why nobody was recognised; "" when somebody was
	Learned    bool    `json:"learned"`          // the face is now part of the graph
}

// Reason says in words for a person why a face was not recognised.
type Reason string

// Reasons of a verdict without a label.
const (
	Outlier    Reason = "not near anybody known"
	NoPath     Reason = "not connected to anybody known"
	Tie        Reason = "as close to one person as to another"
	Unsure     Reason = "below the accept threshold"
	BetterFace Reason = "another face in this frame is a better match"
)

// resolution is the difference below which two harmonic values count as equal, and a value as zero:
// ten times the error that the solution may have.
const resolution = 1e-9

// judge turns the harmonic values of a face into a verdict and the class that claims it, -1 for
// none. The class is set even where the verdict is that confidence does not suffice.
func (l *Learner) judge(values []float64) (Verdict, int) {
	v := Verdict{Sink: 1}
	best, second := -1, 0.0
	for c, x := range values {
		x = min(max(x, 0), 1)
		v.Sink -= x
		if x > v.Confidence {
			best, second, v.Confidence = c, v.Confidence, x
		} else {
			second = max(second, x)
		}
	}
	v.Sink = min(max(v.Sink, 0), 1)
	switch {
	case v.Confidence <= resolution:
		v.Confidence, v.Reason = 0, NoPath
		return v, -1
	case v.Confidence-second <= resolution:
		v.Reason = Tie
		return v, -1
	}
	v.Best = l.names[best]
	if v.Confidence < l.settings.Accept {
		v.Reason = Unsure
	} else {
		v.Label = v.Best
	}
	return v, best
}

// oneEach takes the label from every verdict but the best of those that share it: nobody is in one
// frame twice. The first of equals wins.
func oneEach(verdicts []Verdict) {
	order := make([]int, len(verdicts))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool {
		return verdicts[order[a]].Confidence > verdicts[order[b]].Confidence
	})
	taken := make(map[string]bool)
	for _, i := range order {
		v := &verdicts[i]
		if v.Label == "" {
			continue
		}
		if taken[v.Label] {
			v.Label, v.Reason = "", BetterFace
			continue
		}
		taken[v.Label] = true
	}
}
