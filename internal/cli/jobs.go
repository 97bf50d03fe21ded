// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"github.com/spf13/cobra"
)

// JobsFlag adds the flag for the number of recordings at once.
func JobsFlag(c *cobra.Command, jobs *int) {
	c.Flags().IntVar(jobs, "jobs", 0, "number of recordings at once (default: the number of processor cores)")
}

// Jobs returns the number of jobs at once for n recordings.
func Jobs(jobs, n int) (int, error) {
	if jobs < 0 {
		return 0, Fail(BadUsage, fmt.Errorf("--jobs must not be negative, got %d", jobs))
	}
	if jobs == 0 {
		jobs = runtime.NumCPU()
	}
	return min(jobs, n), nil
}

// mostAhead is the number of results that may wait for an earlier one.
const mostAhead = 64

// InOrder runs n jobs, at of them at once, and passes their results to take in order. It ends with the first error of
// take, or with the error of ctx, and waits for running jobs.
func InOrder[T any](ctx context.Context, n, at int, do func(ctx context.Context, i int) T,
	take func(i int, result T) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	todo, results := make(chan int, n), make([]chan T, n)
	defer close(todo)
	for range at {
		running.Go(func() {
			for i := range todo {
				if ctx.Err() != nil {
					return
				}
				results[i] <- do(ctx, i)
			}
		})
	}
	begun := 0
	for taken := range n {
		for ; begun < min(n, taken+mostAhead); begun++ {
			results[begun] = make(chan T, 1)
			todo <- begun
		}
		select {
		case result := <-results[taken]:
			results[taken] = nil
			if err := take(taken, result); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
