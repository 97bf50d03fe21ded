package online

import (
	"cmp"
	"fmt"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/graph"
	"github.com/faceauth/faceauth/quantized"
)

// ErrSettings is wrapped by the errors of [New] and [Learner.Configure]; they say which setting
// cannot be used.
var ErrSettings = quantized.ErrConfig

// Settings of a learner. The zero value of each field stands for its default.
type Settings struct {
	K              int     `json:"k"`               // centroids kept; memory and time a step are fixed by it. Default 300
	Sigma          float64 `json:"sigma"`           // kernel width in units of the space's distance. Default: the space's
	Gamma          float64 `json:"gamma"`           // regulariser gamma_g. Default: the space's
	Reach          float64 `json:"reach"`           // longest edge in units of the space's distance. Default: the space's; 0 where it has none
	Epsilon        float64 `json:"epsilon"`         // a smaller compact weight is no edge. Default 0.1 Gamma, as in the thesis
	Multiplier     float64 `json:"multiplier"`      // growth of R at a repartition. Default 1.5, as in the thesis
	Accept         float64 `json:"accept"`          // least confidence of a verdict, in [0,1]. Default: any above 0
	Learn          float64 `json:"learn"`           // least confidence of a face that is learned, in [0,1]. Default: every face that is no outlier
	MaxHops        int     `json:"max_hops"`        // a face further from a labelled one, counted in faces through which it was accepted, is not learned. Default 0, no limit
	Journal        int     `json:"journal"`         // learned faces that [Learner.Undo] can take back one by one. Default 16384
	HalfLife       int     `json:"half_life"`       // observations after which a learned face counts half; see [quantized.Graph.Age]. Default 0, for ever
	LearnCap       int     `json:"learn_cap"`       // faces of one person that are learned in a window, at the most. Default 0, no limit
	LearnWindow    int     `json:"learn_window"`    // observations in a window. Default 1000
	DriftDistance  float64 `json:"drift_distance"`  // see [Learner.Drift]: no alarm before the learned centre is that far away. Default: Reach; where that is 0, or with a large number, there is no alarm
	DriftConstancy float64 `json:"drift_constancy"` // no alarm below that constancy. Default 0.5
	Freeze         bool    `json:"freeze"`          // judge, but learn nothing
	Absorb         bool    `json:"absorb"`          // labelled vertices take in the faces near them
	Normalized     bool    `json:"normalized"`      // use the normalised Laplacian; a step then takes O(k³)
}

// defaults fills in what was left open.
func (s Settings) defaults(space face.Space) Settings {
	s.K = cmp.Or(s.K, 300)
	s.Journal = cmp.Or(s.Journal, 1<<14)
	s.LearnWindow = cmp.Or(s.LearnWindow, 1000)
	s.DriftConstancy = cmp.Or(s.DriftConstancy, .5)
	s.Sigma = cmp.Or(s.Sigma, space.Sigma)
	s.Gamma = cmp.Or(s.Gamma, space.Gamma)
	s.Reach = cmp.Or(s.Reach, space.Reach)
	s.DriftDistance = cmp.Or(s.DriftDistance, s.Reach)
	s.Epsilon = cmp.Or(s.Epsilon, 0.1*s.Gamma)
	s.Multiplier = cmp.Or(s.Multiplier, 1.5)
	return s
}

func (s Settings) check() error {
	if !(s.Accept >= 0 && s.Accept <= 1) {
		return fmt.Errorf("%w: accept is %g, but must lie between 0 and 1", ErrSettings, s.Accept)
	}
	if !(s.Learn >= 0 && s.Learn <= 1) {
		return fmt.Errorf("%w: learn is %g, but must lie between 0 and 1", ErrSettings, s.Learn)
	}
	if !(s.Sigma > 0) {
		return fmt.Errorf("%w: sigma is %g, but must be positive", ErrSettings, s.Sigma)
	}
	if s.LearnCap < 0 || s.LearnWindow < 1 {
		return fmt.Errorf("%w: %d faces are to be learned in %d observations; the one must not be negative, and the other positive", ErrSettings, s.LearnCap, s.LearnWindow)
	}
	if !(s.DriftDistance >= 0) || !(s.DriftConstancy >= -1 && s.DriftConstancy <= 1) {
		return fmt.Errorf("%w: drift_distance is %g and drift_constancy is %g; the one must not be negative, and the other lie between -1 and 1", ErrSettings, s.DriftDistance, s.DriftConstancy)
	}
	if s.MaxHops < 0 {
		return fmt.Errorf("%w: max_hops is %d, but must not be negative", ErrSettings, s.MaxHops)
	}
	return nil
}

func (s Settings) graph(space face.Space) quantized.Config {
	return quantized.Config{
		K:          s.K,
		Multiplier: s.Multiplier,
		Dim:        space.Dim,
		Scale:      space.Scale,
		Kernel:     graph.Heat(s.Sigma),
		Epsilon:    s.Epsilon,
		Reach:      s.Reach,
		Gamma:      s.Gamma,
		Journal:    s.Journal,
		HalfLife:   s.HalfLife,
		Absorb:     s.Absorb,
		Normalized: s.Normalized,
	}
}
