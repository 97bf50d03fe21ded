// SPDX-License-Identifier: Apache-2.0

//go:build !eyefault

package serve

// fault is where a build with the tag eyefault breaks, as a flaw in a decoder would.
func fault() {}
