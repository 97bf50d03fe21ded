// SPDX-License-Identifier: Apache-2.0

package page

import "slices"

// Routes returns the method and path of everything that programs may ask for.
func Routes(p *Page) []string { return slices.Clone(p.routes) }
