// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"runtime"
	"sync"

	"github.com/spf13/cobra"
)

// JobsFlag adds the flag for the number of recordings at once.
func JobsFlag(c *cobra.Command, jobs *uint) {
	c.Flags().UintVar(jobs, "jobs", 0,
		"number of recordings at once (default: the number of processor cores)")
}

// Jobs returns the number of jobs at once for n recordings.
func Jobs(jobs uint, n int) int {
	return int(min(cmp.Or(jobs, uint(runtime.NumCPU())), uint(n)))
}

// mostAhead is the number of results that may wait for an earlier one.
const mostAhead = 64

// InOrder runs n jobs, at of them at once, and passes their results to take in order. It ends with
// the first error of take, or with the error of ctx, and waits for running jobs.
func InOrder[T any](ctx context.Context, n, at int, do func(ctx context.Context, i int) T,
	take func(i int, result T) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	begun, free := make(chan chan T, mostAhead), make(chan bool, at)
	running.Go(func() {
		defer close(begun)
		for i := 0; i < n && ctx.Err() == nil; i++ {
			free <- true
			result := make(chan T, 1)
			running.Go(func() {
				result <- do(ctx, i)
				<-free
			})
			select {
			case begun <- result:
			case <-ctx.Done():
			}
		}
	})
	taken := 0
	for result := range begun {
		select {
		case r := <-result:
			if err := take(taken, r); err != nil {
				return err
			}
			taken++
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return ctx.Err()
}
