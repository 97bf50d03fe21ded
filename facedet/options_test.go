// SPDX-License-Identifier: Apache-2.0

package facedet_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/faceauth/faceauth/facedet"
)

// Invalid options are refused before anything is opened, and are not replaced by defaults.
func TestOptions(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "1.png", picture(t, 1, 8, 8))
	for _, c := range []struct {
		options facedet.Options
		want    string // "" if the options are valid
	}{
		{facedet.Options{}, ""},
		{facedet.Options{Timeout: time.Second, FPS: 2}, ""},
		{facedet.Options{Timeout: -time.Second}, "the timeout is -1s, but must not be negative"},
		{facedet.Options{FPS: -2}, "FPS is -2, but must lie between 0, for the default, and 1e+06"},
		{facedet.Options{FPS: math.NaN()}, "FPS is NaN"},
		{facedet.Options{FPS: math.Inf(1)}, "FPS is +Inf"},
	} {
		for _, name := range []string{dir, "http://127.0.0.1:1/"} {
			src, err := facedet.Open(context.Background(), name, c.options)
			if err == nil {
				src.Close()
			}
			switch {
			case c.want == "" && errors.Is(err, facedet.ErrSettings):
				t.Errorf("%+v: %v", c.options, err)
			case c.want != "" && (!errors.Is(err, facedet.ErrSettings) || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%+v, %s: error %v, want %q", c.options, name, err, c.want)
			}
		}
	}
}
