// SPDX-License-Identifier: Apache-2.0

// Command fetch fetches axe-core, which the tests of the office's page use and the project does not
// contain.
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
	defer stop()
	if err := axe.Fetch(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "fetch:", err)
		os.Exit(1)
	}
}
