// SPDX-License-Identifier: Apache-2.0

package online_test

import (
	"fmt"
	"time"

	"github.com/faceauth/faceauth/online"
)

func ExampleLearner_UndoSince() {
	l, err := online.New(plane, online.Settings{})
	if err != nil {
		panic(err)
	}
	l.Label([]float32{0, 0}, alice)
	friday := time.Date(2026, 11, 20, 17, 0, 0, 0, time.UTC)
	for i := range 5 {
		l.SetTime(friday.Add(time.Duration(i) * time.Hour))
		l.Observe([]float32{0, .2 * float32(i)})
	}
	// Somebody else sat there from six o'clock on.
	n, err := l.UndoSince(friday.Add(time.Hour), friday.Add(6*time.Hour))
	if err != nil {
		panic(err)
	}
	fmt.Println(n, "faces taken back,", l.Graph().Mass(), "left")
	// Output:
	// 3 faces taken back, 2 left
}

func ExampleLearner_Drift() {
	l, err := online.New(plane, online.Settings{DriftDistance: .5})
	if err != nil {
		panic(err)
	}
	l.Label([]float32{0, 0}, alice)
	for i := range 12 {
		l.Observe([]float32{0, .2 * float32(i)}) // each a little further, and never back
	}
	d, err := l.Drift(alice)
	if err != nil {
		panic(err)
	}
	fmt.Printf("moved by %.2f, constancy %.2f, alarm %t\n", d.Distance, d.Constancy, d.Alarm)
	// Output:
	// moved by 1.10, constancy 1.00, alarm true
}
