// SPDX-License-Identifier: Apache-2.0

package evaluate_test

import (
	"context"
	"fmt"

	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/faceauth/faceauth/online"
)

// Two people on a line move slowly. One of them at a time is enrolled from a single face. The
// learner follows the person, and the nearest labelled face cannot.
func ExampleRunAll() {
	var people []evaluate.Identity
	for i, name := range []string{"alice", "bob"} {
		id := evaluate.Identity{Name: name}
		for step := range 30 {
			x := float32(10*i) + .1*float32(step)
			id.Faces = append(id.Faces, evaluate.Face{Vector: []float32{x}, Usable: true})
		}
		people = append(people, id)
	}
	names := []string{"alice", "bob"}
	summary, err := evaluate.RunAll(context.Background(), people,
		evaluate.Protocol{Enroll: 1, Order: evaluate.Interleaved, Stride: 1},
		evaluate.OneUser(names, names),
		[]evaluate.Entry{evaluate.Learner(line, online.Settings{}), evaluate.Mean(line)}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	learner := summary.Methods[0]
	fmt.Printf("%s: recall %.2f, false matches of %d of %d people\n", learner.Name, learner.Recall,
		learner.FMR.PeopleWrong, learner.FMR.People)
	fmt.Printf("two people say little: with 95 %% confidence, it happens to fewer than %.0f %%\n",
		100*learner.FMR.PeopleInterval.High)
	// Output:
	// learner: recall 1.00, false matches of 0 of 2 people
	// two people say little: with 95 % confidence, it happens to fewer than 84 %
}
