// SPDX-License-Identifier: Apache-2.0

package eye_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/faceauth/faceauth/eye"
)

// The names of files are bytes.
func TestRequestNames(t *testing.T) {
	q := eye.Request{Open: &eye.Open{Name: "caf\xe9.avi", Roots: []string{"\xff/", "plain", "caf\xe9.avi"}, Faces: 3}}
	b, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	got, err := eye.ReadRequest(bytes.NewReader(append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...)))
	if err != nil || !reflect.DeepEqual(got, q) {
		t.Fatalf("%+v, %v, want %+v", got.Open, err, q.Open)
	}
}
