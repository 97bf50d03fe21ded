// SPDX-License-Identifier: Apache-2.0

package input_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/faceauth/faceauth/internal/input"
)

// The secrets in a URL are in no error, also if another package quotes the URL.
func TestMasker(t *testing.T) {
	source := "http://me:hu%40sh@camera.local/live?token=t0k&password=pw1&profile=main&n=1"
	hide := input.Masker(source)
	cause := errors.New("gone")
	for text, want := range map[string]string{
		"opening " + source:                   "opening http://camera.local/live?...",
		"GET /live?token=t0k&password=pw1 ":   "GET /live?token=***&password=*** ",
		"user me:hu%40sh, password hu@sh":     "user ***, password ***",
		"HTTP/1.1 401":                        "HTTP/1.1 401",
		"no stream of profile main, pw1, t0k": "no stream of profile main, ***, ***",
	} {
		got := hide(fmt.Errorf("%s: %w", text, cause))
		if got.Error() != want+": gone" || !errors.Is(got, cause) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	// A password that is a word, or part of one, takes nothing from other words.
	for source, texts := range map[string]map[string]string{
		"rtsp://me:a@camera.local/x": {
			"a camera has gone":          "a camera has gone",
			"rtsp://me:a@camera.local/y": "rtsp://***@camera.local/y",
			"GET //me:a@camera/":         "GET //***@camera/", "some menu": "some menu"},
		"rtsp://root:came@host/x": {
			"the camera came": "the camera ***", "rooted camera": "rooted camera",
			"(root)": "(***)"},
		"http://host/x?channel=main&key=k": {
			"the main key": "the main key", "?key=k&channel=main": "?key=***&channel=***"},
	} {
		for text, want := range texts {
			if got := input.Masker(source)(errors.New(text)).Error(); got != want {
				t.Errorf("%s: %q, want %q", source, got, want)
			}
		}
	}
	if err := input.Masker("day.mp4")(cause); err != cause {
		t.Error(err)
	}
}
