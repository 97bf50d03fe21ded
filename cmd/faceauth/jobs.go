// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package main

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"github.com/spf13/cobra"
)

// jobsFlag adds the flag that says how many recordings are looked at at once.
func jobsFlag(c *cobra.Command, jobs *int) {
	c.Flags().IntVar(jobs, "jobs", 0, "recordings to look at at once (default: the number of processor cores)")
}

// jobsOf returns how many of n recordings are looked at at once.
func jobsOf(jobs, n int) (int, error) {
	if jobs < 0 {
		return 0, fail(badUsage, fmt.Errorf("--jobs must not be negative, got %d", jobs))
	}
	if jobs == 0 {
		jobs = runtime.NumCPU()
	}
	return min(jobs, n), nil
}

// mostAhead is how many results of jobs wait for one that is not ready.
const mostAhead = 64

// inOrder does n jobs, so many at once, and takes their results in their order. It ends with the first error of take,
// or with the error of ctx, and waits for the jobs that were begun.
func inOrder[T any](ctx context.Context, n, at int, do func(ctx context.Context, i int) T,
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
