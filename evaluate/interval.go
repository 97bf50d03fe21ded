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

// ClopperPearson returns the exact 95 % interval of a rate of which n independent trials out of a total
// were positive (Clopper and Pearson 1934). Frames of one person are not independent; people are. It
// panics unless 0 <= n <= total; without trials the interval is all of [0,1].
func ClopperPearson(n, total int) Interval {
	if n < 0 || n > total {
		panic("evaluate: more positive trials than trials")
	}
	const tail = .025
	i := Interval{0, 1}
	if n > 0 {
		i.Low = distuv.Beta{Alpha: float64(n), Beta: float64(total - n + 1)}.Quantile(tail)
	}
	if n < total {
		i.High = distuv.Beta{Alpha: float64(n + 1), Beta: float64(total - n)}.Quantile(1 - tail)
	}
	return i
}

// ErrorRate is a share of faces that were judged wrongly, and of people of whom at least one was. Over
// several runs a face or a person counts once, and as an error when it was one in any of them.
type ErrorRate struct {
	Rate   Rate `json:"rate"`
	Errors int  `json:"errors"` // faces judged wrongly
	Faces  int  `json:"faces"`
	// Interval is that of the rate at 95 %, if the faces were independent trials. Faces of one person are
	// not, so it is too narrow.
	Interval Interval `json:"interval"`

	PeopleWrong    int      `json:"people_wrong"` // people of whom a face was judged wrongly
	People         int      `json:"people"`       // independent trials
	PeopleInterval Interval `json:"people_interval"`
}

// Plus returns the rate over the faces and people of both, who must be others.
func (e ErrorRate) Plus(f ErrorRate) ErrorRate {
	return ErrorRate{
		Errors: e.Errors + f.Errors, Faces: e.Faces + f.Faces,
		PeopleWrong: e.PeopleWrong + f.PeopleWrong, People: e.People + f.People,
	}.complete()
}

// complete fills in what follows from the counts.
func (e ErrorRate) complete() ErrorRate {
	e.Rate = rate(e.Errors, e.Faces)
	e.Interval, e.PeopleInterval = ClopperPearson(e.Errors, e.Faces), ClopperPearson(e.PeopleWrong, e.People)
	return e
}

// errorRate counts the trials that are of a kind, and those of them that went wrong.
func errorRate(trials []trial, kind func(trial) (counts, wrong bool)) ErrorRate {
	type id struct {
		person string
		face   int
	}
	faces, people := make(map[id]bool), make(map[string]bool)
	for _, t := range trials {
		if counts, wrong := kind(t); counts {
			key := id{t.person, t.face}
			faces[key] = faces[key] || wrong
			people[t.person] = people[t.person] || wrong
		}
	}
	e := ErrorRate{Faces: len(faces), People: len(people)}
	for _, wrong := range faces {
		if wrong {
			e.Errors++
		}
	}
	for _, wrong := range people {
		if wrong {
			e.PeopleWrong++
		}
	}
	return e.complete()
}
