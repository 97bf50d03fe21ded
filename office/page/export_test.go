// SPDX-License-Identifier: Apache-2.0

package page

import "github.com/faceauth/faceauth/office"

import "slices"

// Routes returns the method and path of everything that programs may ask for.
func Routes(p *Page) []string { return slices.Clone(p.routes) }

// Say does what somebody says, and returns the correction of the answer.
func (p *Page) Say(do func() error) (*office.Correction, error) {
	s, err := p.say(func(*said) error { return do() })
	return s.Correction, err
}
