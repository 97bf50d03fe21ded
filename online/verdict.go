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
	Rejected   Reason = "known not to be the person it looks like"
	BetterFace Reason = "another face in this frame is a better match"
)

// resolution is the difference below which two harmonic values count as equal, and a value as zero:
// ten times the error that the solution may have.
const resolution = 1e-9

// claim is the class that claims a face, and its harmonic value. It is there even where that value does not suffice
// for a verdict.
type claim struct {
	class int // -1 for none
	value float64
}

// judge turns the harmonic values of the face x into a verdict and the claim on it.
func (l *Learner) judge(x []float32, values []float64) (Verdict, claim) {
	v := Verdict{Sink: 1}
	best, second, person := claim{class: -1}, 0., -1
	for c, value := range values {
		value = min(max(value, 0), 1)
		if !l.not[c] {
			v.Sink -= value
			if value > v.Confidence {
				person, v.Confidence = c, value
			}
		}
		if value > best.value {
			best, second = claim{c, value}, best.value
		} else {
			second = max(second, value)
		}
	}
	v.Sink = min(max(v.Sink, 0), 1)
	switch {
	case best.value <= resolution:
		v.Confidence, v.Reason = 0, NoPath
		return v, claim{class: -1}
	case best.value-second <= resolution:
		v.Reason = Tie
		return v, claim{class: -1, value: best.value}
	}
	if person >= 0 {
		v.Best = l.names[person]
	}
	switch {
	case l.not[best.class]:
		v.Reason = Rejected
	case l.rejects(x, best.class):
		v.Reason, best.class = Rejected, l.class(l.names[best.class], true)
	case v.Confidence < l.settings.Accept:
		v.Reason = Unsure
	default:
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
