// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
)

// The names of files are bytes.
func TestRequestNames(t *testing.T) {
	var got Request[string, []string]
	q := Request[string, []string]{Open: &Open[[]string]{Name: "caf\xe9.avi",
		Options: []string{"\xff/", "plain", "caf\xe9.avi"}}}
	err := ReadRequest(bytes.NewReader(AppendRequest(nil, q)), &got)
	if err != nil || !reflect.DeepEqual(got, q) {
		t.Fatalf("%+v, %v, want %+v", got.Open, err, q.Open)
	}
	err = ReadRequest(bytes.NewReader([]byte{255, 255, 255, 255}), &got)
	if !errors.Is(err, ErrRules) {
		t.Errorf("a request of 4 GiB: %v", err)
	}
}
