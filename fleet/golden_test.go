// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"github.com/nats-io/nkeys"

	"github.com/faceauth/faceauth/internal/fixture"
)

// A value of the first version is read, and one of a newer version is called so. The keys are made for this test.
func TestGolden(t *testing.T) {
	key, err := nkeys.FromRawSeed(nkeys.PrefixByteUser, bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	device, err := key.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	person := secret(bytes.Repeat([]byte{9}, 32))
	said := words{Name: &naming{Clock: 3, Name: "alice"}, Spaces: []string{"plane"}, Faces: []faceWord{
		{ID: make([]byte, len(FaceID{})), Clock: 4, State: labelled, Vector: make([]byte, 8), Taken: 1e12, Quality: .5},
	}}
	data, err := os.ReadFile(fixture.Golden(t, "value", func(path string) error {
		v := value{N: 5, Box: person.seal(encode(said), "place")}
		return os.WriteFile(path, v.seal("fleet", device, "name", key), 0o600)
	}))
	if err != nil {
		t.Fatal(err)
	}
	v, err := openValue("fleet", device, "name", data)
	if err != nil || v.N != 5 {
		t.Fatal(v.N, err)
	}
	text, err := person.open(v.Box, "place")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := openWords(text); err != nil || !bytes.Equal(encode(got), encode(said)) {
		t.Errorf("%+v, %v", got, err)
	}
	newer := encode(wireValue{Version: Version + 1, Payload: []byte{1}, Sig: []byte{2}})
	if _, err := openValue("fleet", device, "name", newer); !errors.Is(err, errNewer) {
		t.Error(err)
	}
}
