// SPDX-License-Identifier: Apache-2.0

package models_test

import (
	"encoding/json"
	"image"
	"slices"
	"testing"

	"github.com/faceauth/faceauth/internal/fixture"
	"github.com/faceauth/faceauth/models"
)

// Every network of the catalogue is found by its name, and has a licence, a hash, and what a
// description needs.
func TestCatalogue(t *testing.T) {
	var names []string
	for _, d := range models.Catalogue() {
		if d.Licence == "" || d.Source == "" || slices.Contains(names, d.Name) {
			t.Errorf("%s has no licence, no source, or another's name", d.Name)
		}
		names = append(names, d.Name)
		b := fixture.Must(json.Marshal(d))(t)
		if _, err := models.ParseDescription(describe(t, string(b))); err != nil {
			t.Error(err)
		}
		if got, err := models.Of(d.Kind, d.Name); err != nil || got.SHA256 != d.SHA256 {
			t.Errorf("%s is %+v, %v", d.Name, got, err)
		}
	}
}

// The input has the shape of the part, in steps, and is not larger than a look may be.
func TestFeed(t *testing.T) {
	yunet, _ := models.Of(models.Detector, "yunet")
	for part, want := range map[image.Point]image.Point{
		{640, 480}: {640, 480}, {1920, 1080}: {1280, 736}, {1080, 1920}: {736, 1280},
		{1, 1}: {32, 32}, {100, 50}: {96, 64}, {20000, 900}: {1280, 64},
	} {
		if got := yunet.Feed(part, yunet.Input.Width); got != want {
			t.Errorf("%v is fed as %v, want %v", part, got, want)
		}
		if got := models.Default(models.Detector).Feed(part, 640); got != image.Pt(320, 240) {
			t.Errorf("%v is fed to the builtin detector as %v", part, got)
		}
	}
	for size, want := range map[image.Point][2]int{
		{}: {0, 0}, {320, 240}: {40, 24}, {640, 480}: {40, 24}, {960, 720}: {60, 24},
		{1280, 720}: {40, 24}, {1920, 1080}: {40, 36}, {3840, 2160}: {40, 40},
	} {
		if a, b := models.Default(models.Detector).LeastSeen(size),
			yunet.LeastSeen(size); a != want[0] ||
			b != want[1] {
			t.Errorf("%v: faces from %d and %d pixels, want %d", size, a, b, want)
		}
	}
}
