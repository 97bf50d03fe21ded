// SPDX-License-Identifier: Apache-2.0

package online

import (
	"cmp"
	"fmt"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/quantized"
)

// ErrSettings is wrapped by the errors of [New] and [Learner.Configure]; they name the setting that
// cannot be used.
var ErrSettings = quantized.ErrConfig

// Off switches off a setting whose zero value means its default: Reach, Link and DriftDistance.
const Off = -1

const (
	nameRate       = 1e-3    // default of Settings.Strangers
	anchorRate     = 1e-4    // share of strangers' faces that may be near an enrolled face
	mostStrangers  = .1      // as a setting
	epsilon        = .1      // of gamma: a smaller compact weight is no edge, as in the thesis
	growth         = 1.2     // of R at a repartition; 1.5 in the thesis
	journal        = 1 << 14 // learned faces that [Learner.Undo] can take back one by one
	leastConstancy = .5      // no alarm of [Learner.Drift] below it
)

// Settings of a learner. The zero value of each field means its default.
type Settings struct {
	// K is the largest number of learned centroids; labelled faces come on top of it. Default 300.
	K int `json:"k"`
	// Sigma is the kernel width in units of the space's distance. Default: the space's.
	Sigma float64 `json:"sigma"`
	Gamma float64 `json:"gamma"` // regulariser gamma_g. Default: the space's
	// Reach is the longest edge in units of the space's distance. Default: the space's, if it has
	// one. Off: no limit.
	Reach float64 `json:"reach"`
	// Link is the longest edge between successive faces of one person, see [Observation]. Default:
	// the space's distance at a false match rate of 1e-2 between stills, if that was measured. Off:
	// as long as other edges.
	Link float64 `json:"link"`
	// Strangers is the rate that a user asks for: the share of strangers who get somebody's name
	// from an enrolled face, whatever the number of people ([Learner.Radii]), above 0 and at most
	// 0.1. It has no effect in a space that was not measured. Default 1e-3.
	Strangers float64 `json:"strangers_rate"`
	// least confidence of a verdict with a name, in [0,1]. Default: any above 0
	Accept float64 `json:"accept"`
	// Learn is the least confidence of a face that is learned, in [0,1]. Default: every face that
	// is not an outlier is learned.
	Learn float64 `json:"learn"`
	// DriftDistance: no alarm of [Learner.Drift] while the learned centre is nearer than this.
	// Default: Reach.
	DriftDistance float64 `json:"drift_distance"`
	Freeze        bool    `json:"freeze"` // judge, but learn nothing
	// NoPictures keeps no pictures of learned faces, and drops those that were kept.
	NoPictures bool `json:"no_pictures,omitempty"`
}

// defaults fills in default values.
func (s Settings) defaults(space face.Space) Settings {
	s.K = cmp.Or(s.K, 300)
	s.Sigma = cmp.Or(s.Sigma, space.Sigma)
	s.Gamma = cmp.Or(s.Gamma, space.Gamma)
	s.Reach = cmp.Or(s.Reach, space.Reach, Off)
	s.DriftDistance = cmp.Or(s.DriftDistance, s.Reach)
	s.Strangers = cmp.Or(s.Strangers, nameRate)
	if s.Link == 0 && space.Stills.Measured() {
		s.Link = space.Stills.Within(1e-2)
	}
	s.Link = cmp.Or(s.Link, Off)
	return s
}

func (s Settings) check() error {
	var what string
	switch {
	case !(s.Strangers > 0 && s.Strangers <= mostStrangers):
		what = fmt.Sprintf("strangers is %g, but must lie above 0 and be at most %g", s.Strangers,
			mostStrangers)
	case !(s.Accept >= 0 && s.Accept <= 1):
		what = fmt.Sprintf("accept is %g, but must lie between 0 and 1", s.Accept)
	case !(s.Learn >= 0 && s.Learn <= 1):
		what = fmt.Sprintf("learn is %g, but must lie between 0 and 1", s.Learn)
	case !(s.Sigma > 0):
		what = fmt.Sprintf("sigma is %g, but must be positive", s.Sigma)
	case !(s.Gamma > 0 && s.Gamma < 1/epsilon):
		what = fmt.Sprintf("gamma is %g, but must lie between 0 and %g", s.Gamma, 1/epsilon)
	case !(s.Reach > 0 || s.Reach == Off):
		what = fmt.Sprintf("reach is %g, but must be positive, or %d for no bound", s.Reach, Off)
	case !(s.Link > 0 && s.Link < 1e30 || s.Link == Off):
		what = fmt.Sprintf("link is %g, but must be positive, or %d for no longer edges", s.Link,
			Off)
	case !(s.DriftDistance > 0 || s.DriftDistance == Off):
		what = fmt.Sprintf("drift_distance is %g, but must be positive, or %d for no alarm",
			s.DriftDistance, Off)
	default:
		return nil
	}
	return fmt.Errorf("%w: %s", ErrSettings, what)
}

func (s Settings) graph(space face.Space) quantized.Config {
	return quantized.Config{
		K:          s.K,
		Multiplier: growth,
		Dim:        space.Dim,
		Scale:      space.Scale,
		Kernel:     quantized.Heat(s.Sigma),
		Epsilon:    epsilon * s.Gamma,
		Reach:      max(s.Reach, 0),
		Link:       max(s.Link, 0),
		Gamma:      s.Gamma,
		Journal:    journal,
	}
}
