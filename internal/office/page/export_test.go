// SPDX-License-Identifier: Apache-2.0

package page

import "github.com/faceauth/faceauth/internal/office"

// Routes returns the method and path of every request that programs may make.
func Routes(p *Page) (all []string) {
	for _, r := range p.routes {
		all = append(all, r.pattern)
	}
	return all
}

// Say applies a correction, and returns the correction in the answer.
func (p *Page) Say(do func() error) (*office.Correction, error) {
	s, err := p.say(func(*said) error { return do() })
	return s.Correction, err
}

// Finish forgets at once those who wait to be forgotten.
func Finish(p *Page) error { return p.dooms.finish() }

// Table returns visits as CSV.
var Table = table
