// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package clitest

const withCgo = true
