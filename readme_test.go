// SPDX-License-Identifier: Apache-2.0

package faceauth_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/demo"
	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/online"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
	"github.com/faceauth/faceauth/replay"
)

// library is the README's example, line by line.
func library(ctx context.Context, dir string, out io.Writer) {
	detector, _ := facedet.NewNetwork(models.Default(models.Detector), models.Default(models.Landmarks), models.Dir())
	embedding, _ := preprocess.NewEmbedding(models.Default(models.Embedding), models.Dir())
	learner, _ := online.New(embedding.Space(), online.Settings{})
	for _, name := range []string{"alice", "bob"} {
		src, _ := facedet.Open(ctx, filepath.Join(dir, name+".avi"), facedet.Options{})
		frame, _ := pipeline.New(src, detector, embedding, pipeline.Options{}).Next(ctx)
		learner.Label(frame.Samples[0].Vector, name)
	}
	src, _ := facedet.Open(ctx, filepath.Join(dir, "recording.avi"), facedet.Options{})
	stream := pipeline.New(src, detector, embedding, pipeline.Options{Gate: preprocess.LearnGate})
	report := replay.NewReport()
	replay.Run(ctx, stream, learner, report, replay.Options{})
	for _, p := range report.Summary().People {
		fmt.Fprintln(out, p.Name, p.Faces)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The README's example is code that runs.
func TestReadmeExample(t *testing.T) {
	_, code, _ := strings.Cut(read(t, "readme_test.go"), "out io.Writer) {\n")
	code, _, _ = strings.Cut(code, "\n}\n")
	code = strings.ReplaceAll("\n"+code, "\n\t", "\n")
	_, shown, ok := strings.Cut(read(t, "README.md"), "```go")
	shown, _, _ = strings.Cut(shown, "\n```")
	if shown != code || !ok {
		t.Errorf("the README shows\n%s\nand this runs:\n%s", shown, code)
	}
	if n := strings.Count(shown, "\n"); n > 16 {
		t.Errorf("the README's example has %d lines", n)
	}
	if testing.Short() {
		t.Skip("the example replays half a minute")
	}
	t.Setenv("FACEAUTH_MODELS", fixture.Models(t))
	stills, err := demo.Find()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if _, err := demo.Write(context.Background(), stills, dir); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	library(context.Background(), dir, &out)
	if !strings.HasPrefix(out.String(), "alice 2") || !strings.Contains(out.String(), "bob ") {
		t.Errorf("it printed %q", &out)
	}
}

// What the README refers to is there.
func TestReadmeLinks(t *testing.T) {
	text := read(t, "README.md")
	for _, file := range []string{"docs/results.md", "docs/report.png"} {
		if _, err := os.Stat(file); err != nil || !strings.Contains(text, file) {
			t.Errorf("%s: in the README %t, %v", file, strings.Contains(text, file), err)
		}
	}
}
