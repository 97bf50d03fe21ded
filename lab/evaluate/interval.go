// SPDX-License-Identifier: Apache-2.0

package evaluate

import (
	"encoding/json"

	"gonum.org/v1/gonum/stat/distuv"
)

// Interval is a confidence interval of a rate.
type Interval struct{ Low, High float64 }

// MarshalJSON writes the interval as a pair.
func (i Interval) MarshalJSON() ([]byte, error) { return json.Marshal([2]float64{i.Low, i.High}) }

// UnmarshalJSON reads a pair.
func (i *Interval) UnmarshalJSON(b []byte) error {
	var pair [2]float64
	err := json.Unmarshal(b, &pair)
	i.Low, i.High = pair[0], pair[1]
	return err
}

// ClopperPearson returns the exact 95 % interval of a rate of n positive trials out of total
// independent trials (Clopper and Pearson 1934). Frames of one person are not independent; people
// are. It panics unless 0 <= n <= total. Without trials the interval is [0,1].
func ClopperPearson(n, total int) Interval {
	if n < 0 || n > total {
		panic("evaluate: more positive trials than trials")
	}
	if total == 0 {
		return Interval{0, 1}
	}
	return exact(float64(n)/float64(total), float64(total))
}

// tail is the probability that a rate lies below its interval; the probability above is the same.
const tail = .025

// exact returns the Clopper-Pearson interval of a rate in [0,1] of n > 0 trials, where n may be
// fractional.
func exact(rate, n float64) Interval {
	i, positive := Interval{0, 1}, rate*n
	if rate > 0 {
		i.Low = distuv.Beta{Alpha: positive, Beta: n - positive + 1}.Quantile(tail)
	}
	if rate < 1 {
		i.High = distuv.Beta{Alpha: positive + 1, Beta: n - positive}.Quantile(1 - tail)
	}
	return i
}

// ErrorRate is the share of wrong attempts, and the share of people with at least one wrong
// attempt. The attempts of several runs are added up, as ISO/IEC 19795-1 says: a face is an attempt
// in each run in which it is judged.
type ErrorRate struct {
	Rate   Rate `json:"rate"`
	Errors int  `json:"errors"` // wrong attempts
	Faces  int  `json:"faces"`  // attempts: faces judged
	// Interval is the 95 % interval of the rate. People are the independent trials, and not their
	// attempts: it is the Clopper-Pearson interval for the number of trials with the same
	// information as all attempts (Korn and Graubard 1998). If fewer than two people met an error,
	// or fewer than two met none, the correlation of one person's attempts is unknown, and each
	// person is one trial. If each run has its own user, attempts on one user are correlated, too.
	Interval Interval `json:"interval"`

	// PeopleWrong counts people with a wrong attempt in any run. More attempts give more such
	// people.
	PeopleWrong int `json:"people_wrong"`
	People      int `json:"people"` // number of people
	// PeopleInterval is the exact interval of the share of people with a wrong attempt.
	PeopleInterval Interval `json:"people_interval"`
}

// errorRate counts the trials of a kind, and the wrong trials among them.
func errorRate(trials []trial, kind func(trial) (counts, wrong bool)) ErrorRate {
	type pair struct{ person, user string }
	people, users, pairs := make(map[string]*tally), make(map[string]*tally), make(map[pair]*tally)
	var e ErrorRate
	for _, t := range trials {
		counts, wrong := kind(t)
		if !counts {
			continue
		}
		e.Faces++
		if wrong {
			e.Errors++
		}
		count(people, t.person, wrong)
		count(users, t.user, wrong)
		count(pairs, pair{t.person, t.user}, wrong)
	}
	e.People = len(people)
	right := 0 // people with a right attempt
	for _, t := range people {
		if t.errors > 0 {
			e.PeopleWrong++
		}
		if t.errors < t.attempts {
			right++
		}
	}
	e.Rate = rate(e.Errors, e.Faces)
	e.PeopleInterval = ClopperPearson(e.PeopleWrong, e.People)
	e.Interval = Interval{0, 1}
	if e.Faces == 0 {
		return e
	}
	p, trialsOf := float64(e.Rate), float64(e.People)
	if e.PeopleWrong > 1 && right > 1 {
		clusters := len(people)
		v := spread(people, p, e.Faces)
		if len(users) > 1 {
			// Both sums contain the pairs, so the pairs are subtracted once (Cameron, Gelbach and
			// Miller 2011).
			byUser := spread(users, p, e.Faces)
			v = max(v, byUser, v+byUser-spread(pairs, p, e.Faces))
			clusters = min(clusters, len(users))
		}
		trialsOf = float64(e.Faces)
		if v > 0 {
			student := func(freedom float64) float64 {
				return distuv.StudentsT{Sigma: 1, Nu: freedom}.Quantile(1 - tail)
			}
			few := student(float64(e.Faces-1)) / student(float64(clusters-1))
			trialsOf = min(max(p*(1-p)/v*few*few, 1), trialsOf)
		}
	}
	e.Interval = exact(p, trialsOf)
	return e
}

// tally counts the attempts of a person.
type tally struct{ attempts, errors int }

func count[K comparable](m map[K]*tally, key K, wrong bool) {
	t := m[key]
	if t == nil {
		t = new(tally)
		m[key] = t
	}
	t.attempts++
	if wrong {
		t.errors++
	}
}

// spread returns the variance of a rate of this number of attempts, to first order, if only the
// groups are independent.
func spread[K comparable](groups map[K]*tally, rate float64, attempts int) float64 {
	if len(groups) < 2 {
		return 0
	}
	sum := 0.
	for _, t := range groups {
		d := float64(t.errors) - rate*float64(t.attempts)
		sum += d * d
	}
	g, n := float64(len(groups)), float64(attempts)
	return g / (g - 1) * sum / (n * n)
}
