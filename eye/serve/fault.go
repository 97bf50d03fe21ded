// SPDX-License-Identifier: Apache-2.0

//go:build !eyefault

package serve

// fault is the place where a build with the tag eyefault crashes, like a flaw in a decoder.
func fault() {}
