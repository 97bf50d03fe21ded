// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"math"

	"github.com/spf13/pflag"
)

var (
	_ pflag.Value = (*Positive[int])(nil)
	_ pflag.Value = (*Positive[float64])(nil)
)

// Positive is the value of a flag for a number above 0. The learner's settings use 0 for the default, so a user's 0
// must be refused.
type Positive[N int | float64] struct{ n N }

// Set, String and Type implement [pflag.Value].
func (p *Positive[N]) Set(s string) error {
	var n N
	var rest string
	if got, _ := fmt.Sscan(s+" ", &n, &rest); got != 1 {
		return errors.New("it is not a number")
	}
	if !(n > 0) || math.IsInf(float64(n), 1) {
		return errors.New("it must be positive and finite")
	}
	p.n = n
	return nil
}

func (p *Positive[N]) String() string {
	if p.n == 0 {
		return ""
	}
	return fmt.Sprint(p.n)
}

func (p *Positive[N]) Type() string {
	var n N
	return fmt.Sprintf("%T", n)
}
