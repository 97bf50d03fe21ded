// SPDX-License-Identifier: Apache-2.0

package page

// Routes returns the method and path of every request that programs may make.
func Routes(p *Page) []string { return p.routes }

// Finish forgets at once those who wait to be forgotten.
func Finish(p *Page) error { return p.dooms.finish() }
