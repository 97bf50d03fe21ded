package evaluate

import (
	"encoding/json"

	"gonum.org/v1/gonum/stat/distuv"
)

// Interval is a confidence interval of a rate.
type Interval struct{ Low, High float64 }

// MarshalJSON writes the interval as a pair.
func (i Interval) MarshalJSON() ([]byte, error) { return json.Marshal([2]float64{i.Low, i.High}) }

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
