package main

import (
	"runtime"

	"golang.org/x/sync/errgroup"
)

// each does all jobs, as many at once as there are cores, and returns the first error of any.
func each[T any](jobs []T, do func(T) error) error {
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for _, j := range jobs {
		g.Go(func() error { return do(j) })
	}
	return g.Wait()
}
