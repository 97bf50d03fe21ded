// SPDX-License-Identifier: Apache-2.0

// Command fetchaxe fetches axe-core for the tests of the office's page, unless it is there.
//
//	go run ./internal/fetchaxe
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/faceauth/faceauth/internal/axe"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := axe.Fetch(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fetchaxe:", err)
		os.Exit(1)
	}
}
