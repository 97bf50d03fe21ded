package main

import (
	"runtime"
	"sync"
)

// each does all jobs, as many at once as there are cores, and returns the first error of any.
func each[T any](jobs []T, do func(T) error) error {
	work := make(chan T)
	var wait sync.WaitGroup
	var once sync.Once
	var first error
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for j := range work {
				if err := do(j); err != nil {
					once.Do(func() { first = err })
				}
			}
		})
	}
	for _, j := range jobs {
		work <- j
	}
	close(work)
	wait.Wait()
	return first
}
