// SPDX-License-Identifier: Apache-2.0

package eye

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
)

// The names of files are bytes.
func TestRequestNames(t *testing.T) {
	q := Request{Open: &Open{Name: "caf\xe9.avi", Options: Options{
		Roots: []string{"\xff/", "plain", "caf\xe9.avi"}, Faces: 3}}}
	got, err := ReadRequest(bytes.NewReader(appendBody(nil, q)))
	if err != nil || !reflect.DeepEqual(got, q) {
		t.Fatalf("%+v, %v, want %+v", got.Open, err, q.Open)
	}
	if _, err := ReadRequest(bytes.NewReader([]byte{255, 255, 255, 255})); !errors.Is(err,
		ErrRules) {
		t.Errorf("a request of 4 GiB: %v", err)
	}
}
