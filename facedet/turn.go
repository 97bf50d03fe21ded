// SPDX-License-Identifier: Apache-2.0

package facedet

// Turn returns the picture turned clockwise by 0, 90, 180 or 270 degrees. The caller closes it. The error is
// [ErrClosed], or about another angle.
func (p *Picture) Turn(degrees int) (*Picture, error) { return picture(p.native().Turn(degrees)) }
