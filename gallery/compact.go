// SPDX-License-Identifier: Apache-2.0

package gallery

import (
	"context"
	"fmt"
	"time"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/online"
)

// Compact makes a gallery from recordings at once: people with their labelled faces, and the centroids that
// [online.Compact] finds for faces without a label. Force accepts labelled faces of one name that do not look like one
// person.
//
// The error wraps [ErrMixed], or comes from [online.Compact].
func Compact(ctx context.Context, space face.Space, s online.Settings, labelled []online.Example, faces [][]float32,
	how online.Compaction, now time.Time, force bool) (*Gallery, online.Compacted, error) {
	l, report, err := online.Compact(ctx, space, s, labelled, faces, how)
	if err != nil {
		return nil, report, err
	}
	g := &Gallery{learner: l, numbers: make(map[string]int64)}
	for _, name := range l.Names() {
		var own [][]float32
		for _, e := range labelled {
			if e.Name == name {
				own = append(own, e.Vector)
			}
		}
		if !force && !g.onePerson(own) {
			return nil, report, fmt.Errorf("enrolling %s: %w; use recordings of one person", name, ErrMixed)
		}
		g.people = append(g.people, Person{Name: name, Faces: len(own), Enrolled: now.UTC().Truncate(time.Second)})
	}
	return g, report, nil
}
