// SPDX-License-Identifier: Apache-2.0

//go:build !man

package main

import "github.com/faceauth/faceauth/internal/cli"

func main() { cli.Main(newRoot()) }
