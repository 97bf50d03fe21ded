// SPDX-License-Identifier: Apache-2.0

package online

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
)

// mostPicture bounds the bytes of a picture. A JPEG of 112x112 pixels has about 4,000.
const mostPicture = 1 << 16

// portrait is what is known of the look of a learned face.
type portrait struct {
	frontal bool
	picture []byte // JPEG; nil if none is kept
}

type snapshotPortrait struct {
	_       struct{} `cbor:",toarray"`
	ID      int64
	Frontal bool
	Picture []byte
}

// portray remembers how a learned face looks if it became a centroid. A centroid stays where its first face is, so a
// face that was merged into it changes nothing.
func (l *Learner) portray(o Observation, v Verdict, observation int64) {
	id := v.Stored
	i, ok := l.graph.Find(id)
	if _, there := l.portraits[id]; !v.Learned || there || !ok || l.graph.Origin(i).Observation != observation {
		return
	}
	if l.portraits == nil {
		l.portraits = make(map[int64]portrait)
	}
	p := portrait{frontal: o.Frontal}
	if !l.settings.NoPictures && len(o.Picture) <= mostPicture {
		p.picture = bytes.Clone(o.Picture)
	}
	l.portraits[id] = p
	if len(l.portraits) > 2*l.graph.Learned() {
		l.dropPortraits()
	}
}

// dropPortraits drops the portraits of faces that are no longer kept, and the pictures if none should be kept.
func (l *Learner) dropPortraits() {
	maps.DeleteFunc(l.portraits, func(id int64, _ portrait) bool {
		_, ok := l.graph.Find(id)
		return !ok
	})
	if l.settings.NoPictures {
		for id, p := range l.portraits {
			l.portraits[id] = portrait{frontal: p.frontal}
		}
	}
}

// snapshotPortraits returns the portraits of the kept faces, in the order of their IDs.
func (l *Learner) snapshotPortraits() (all []snapshotPortrait) {
	l.dropPortraits()
	for _, id := range slices.Sorted(maps.Keys(l.portraits)) {
		all = append(all, snapshotPortrait{ID: id, Frontal: l.portraits[id].frontal, Picture: l.portraits[id].picture})
	}
	return all
}

// restorePortraits is the opposite of snapshotPortraits. The graph must be there.
func (l *Learner) restorePortraits(all []snapshotPortrait) error {
	if len(all) > 0 {
		l.portraits = make(map[int64]portrait, len(all))
	}
	for _, p := range all {
		_, twice := l.portraits[p.ID]
		if i, ok := l.graph.Find(p.ID); !ok || twice || len(p.Picture) > mostPicture {
			return fmt.Errorf("the portrait of face %d is not of a learned face, or is there twice, or too large", p.ID)
		} else if _, labelled := l.graph.Class(i); labelled {
			return fmt.Errorf("the portrait of face %d is of a labelled face", p.ID)
		}
		l.portraits[p.ID] = portrait{p.Frontal, p.Picture}
	}
	return nil
}
