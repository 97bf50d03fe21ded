// SPDX-License-Identifier: Apache-2.0

package face_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/faceauth/faceauth/face"
)

func TestCheckName(t *testing.T) {
	for name, want := range map[string]string{
		"":                       `unusable name "": it is empty`,
		" alice":                 `unusable name " alice": it begins or ends with a space`,
		"\u200da":                `unusable name "\u200da": it begins or ends with a character that joins others`,
		"a\u202eb":               `unusable name "a\u202eb": it has a character that does not print`,
		"a\nb":                   `unusable name "a\nb": it has a character that does not print`,
		"\xff":                   `unusable name "\xff": it is not UTF-8`,
		strings.Repeat("a", 101): `unusable name: it has 101 characters; use at most 100`,
		"Unknown":                `unusable name "Unknown": reports call strangers so; choose another name`,
	} {
		if err := face.CheckName(name); !errors.Is(err, face.ErrName) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if err := face.CheckName("Žofie d'Arc 李"); err != nil {
		t.Error(err)
	}
}
