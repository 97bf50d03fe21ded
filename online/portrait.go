// SPDX-License-Identifier: Apache-2.0

package online

import (
	"bytes"
	"fmt"
	"maps"

	"github.com/faceauth/faceauth/quantized"
)

// mostPicture bounds the bytes of a picture. A JPEG of 112x112 pixels has about 4,000.
const mostPicture = 1 << 16

// portrait is what is known of the look of a learned face. In CBOR it is an array.
type portrait struct {
	_       struct{} `cbor:",toarray"`
	Frontal bool
	Picture []byte // JPEG; nil if none is kept
}

// portray remembers how a learned face looks if it became a centroid. A centroid stays where its
// first face is, so a face that was merged into it changes nothing.
func (l *Learner) portray(o Observation, v Verdict, observation int64) {
	id := v.Stored
	i, ok := l.graph.Find(id)
	if _, there := l.portraits[id]; !v.Learned || there || !ok ||
		l.graph.Origin(i).Observation != observation {
		return
	}
	if l.portraits == nil {
		l.portraits = make(map[int64]portrait)
	}
	p := portrait{Frontal: o.Frontal}
	if !l.settings.NoPictures && len(o.Picture) <= mostPicture {
		p.Picture = bytes.Clone(o.Picture)
	}
	l.portraits[id] = p
	if len(l.portraits) > 2*l.graph.Learned() {
		l.dropPortraits()
	}
}

// dropPortraits drops the portraits of faces that are no longer kept, and the pictures if none
// should be kept.
func (l *Learner) dropPortraits() {
	maps.DeleteFunc(l.portraits, func(id int64, _ portrait) bool {
		_, ok := l.graph.Find(id)
		return !ok
	})
	if l.settings.NoPictures {
		for id, p := range l.portraits {
			l.portraits[id] = portrait{Frontal: p.Frontal}
		}
	}
}

// checkPortraits returns an error unless all portraits are of learned faces.
func checkPortraits(g *quantized.Graph, all map[int64]portrait) error {
	for id, p := range all {
		i, ok := g.Find(id)
		if ok {
			_, labelled := g.Class(i)
			ok = !labelled
		}
		if !ok || len(p.Picture) > mostPicture {
			return fmt.Errorf("the portrait of face %d is not of a learned face, or too large", id)
		}
	}
	return nil
}
