package pipeline_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/faceauth/faceauth/evaluate"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
)

// What docs/results.md and the README say of vidtimit_rot holds: with the default settings, over all
// choices of two strangers, the learner recognises the people, accepts no stranger, and leaves the
// nearest labelled face behind.
func TestMainBenchmark(t *testing.T) {
	if testing.Short() {
		t.Skip("the recordings take a while")
	}
	d, e := network(t)
	var ids []evaluate.Identity
	var names []string
	for i := range 6 {
		name := fmt.Sprintf("p%d", i)
		src, err := facedet.Open(context.Background(), fixture.Recordings(t, "faces/vidtimit_rot/"+name), facedet.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		id, err := evaluate.Read(context.Background(), name, pipeline.New(src, d, e, pipeline.Options{Gate: preprocess.LearnGate}), preprocess.EnrolGate.Passes)
		if err != nil {
			t.Fatal(err)
		}
		ids, names = append(ids, id), append(names, name)
	}
	for _, order := range []evaluate.Order{evaluate.Sequential, evaluate.Interleaved} {
		s, err := evaluate.RunAll(context.Background(), ids, evaluate.Protocol{Enroll: 4, Order: order, Stride: 1}, evaluate.Choices(names, 2),
			[]evaluate.Entry{evaluate.Learner(e.Space(), online.Settings{}), evaluate.Nearest(e.Space())}, nil)
		if err != nil {
			t.Fatal(err)
		}
		learner, nearest := s.Methods[0], s.Methods[1]
		t.Logf("%s: learner recall %.4f, FAR %.4f; nearest recall %.4f, FAR %.4f", order, learner.Recall, learner.FAR, nearest.Recall, nearest.FAR)
		if learner.Recall < .99 || learner.FAR > .001 || learner.Recall < nearest.Recall+.10 {
			t.Errorf("%s: learner recall %.4f, FAR %.4f; nearest recall %.4f", order, learner.Recall, learner.FAR, nearest.Recall)
		}
	}
	// The longest edge keeps strangers out where the kernel alone would not: at the far corners of the map
	// in docs/thesis/cliff.png.
	for _, c := range []struct {
		settings online.Settings
		falls    bool
	}{
		{online.Settings{Sigma: .30, Gamma: 1e-4}, false},
		{online.Settings{Sigma: .30, Gamma: 1e-2}, false},
		{online.Settings{Sigma: .16, Gamma: 1e-4}, false},
		{online.Settings{Sigma: .27, Gamma: 1e-4, Reach: 3}, true},
	} {
		s, err := evaluate.RunAll(context.Background(), ids, evaluate.Protocol{Enroll: 4, Order: evaluate.Sequential, Stride: 2}, evaluate.Choices(names, 2),
			[]evaluate.Entry{evaluate.Learner(e.Space(), c.settings)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		far := s.Methods[0].FAR
		t.Logf("sigma %g, gamma %g, reach %g: recall %.4f, FAR %.4f", c.settings.Sigma, c.settings.Gamma, c.settings.Reach, s.Methods[0].Recall, far)
		if c.falls && far < .5 || !c.falls && far > .001 {
			t.Errorf("sigma %g, gamma %g, reach %g: FAR %.4f", c.settings.Sigma, c.settings.Gamma, c.settings.Reach, far)
		}
	}
}
