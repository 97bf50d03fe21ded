// SPDX-License-Identifier: Apache-2.0

// Command faceauth-models fetches the neural networks for a program that uses the library, as
// faceauth models install does for the program faceauth. It is pure Go and links nothing else:
//
//	go run github.com/faceauth/faceauth/cmd/faceauth-models@latest
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/faceauth/faceauth/internal/install"
	"github.com/faceauth/faceauth/models"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := install.Builtin(ctx, models.Dir(), func(s string) {
		fmt.Fprintln(os.Stderr, s)
	}); err != nil {
		fmt.Fprintln(os.Stderr, "faceauth-models:", err)
		os.Exit(1)
	}
	fmt.Println("the networks are in", models.Dir())
}
