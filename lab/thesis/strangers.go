// SPDX-License-Identifier: Apache-2.0

package thesis

import (
	"context"
	"fmt"
	"slices"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/lab/evaluate"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/sighting"
	"github.com/spf13/cobra"
)

func newStrangers(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "strangers",
		Short: "who of lfw is taken for one of the people of vidtimit_rot and fast_videos, " +
			"after all their recordings were seen",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.strangers(c.Context()) },
	}
}

// alsoInFilms are the people who are both in fast_videos and in lfw.
var alsoInFilms = []string{"Al_Pacino", "Bill_Gates", "Jet_Li", "Tony_Blair", "Vladimir_Putin"}

func (o *options) strangers(ctx context.Context) error {
	space, known, _, err := o.embeddedHeads(ctx)
	if err != nil {
		return err
	}
	var others []evaluate.Identity
	err = o.inSets(ctx, []string{"fast_videos", "lfw"},
		func(set string, _ face.Space, ids []evaluate.Identity) error {
			if set == "lfw" {
				others = ids
			} else {
				known = append(known, ids...)
			}
			return nil
		})
	if err != nil {
		return err
	}
	l, err := online.New(space, online.Settings{})
	if err != nil {
		return err
	}
	if err := learnAlong(l, known); err != nil {
		return err
	}
	var people, faces, named, anchored int
	for _, id := range others {
		if slices.Contains(alsoInFilms, id.Name) {
			continue
		}
		people++
		for _, f := range id.Faces {
			v, err := l.Judge(f.Vector)
			if err != nil {
				return err
			}
			faces++
			if v.Person != 0 {
				named++
			}
			if v.Anchored {
				anchored++
			}
		}
	}
	fmt.Printf("%d people known, %d faces learned, %+v\n", len(known), l.Counts().Learned,
		l.Radii())
	fmt.Printf("%d strangers, %d pictures: %d given a name, %d near an enrolled face, "+
		"so that two such would be confirmed\n",
		people, faces, named, anchored)
	return nil
}

// learnAlong enrols people with their first four faces, and then has a learner see all their
// recordings.
func learnAlong(l *online.Learner, people []evaluate.Identity) error {
	rest := make([][]int, len(people))
	for i, id := range people {
		first, others, err := id.Divide(4)
		if err != nil {
			return err
		}
		for _, j := range first {
			if err := l.Label(id.Faces[j].Vector, online.Person(i+1)); err != nil {
				return err
			}
		}
		rest[i] = others
	}
	for i, id := range people {
		var w *sighting.Watcher
		take := -1
		for _, j := range rest[i] {
			f := id.Faces[j]
			if f.Vector == nil {
				continue
			}
			if f.Take != take {
				w, take = sighting.NewWatcher(l), f.Take
			}
			if _, err := w.See(f.At, []face.Sample{f.Sample()}, func(int) bool {
				return f.Hold
			}); err != nil {
				return err
			}
		}
	}
	return nil
}
