// SPDX-License-Identifier: Apache-2.0

package eye

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/faceauth/faceauth/face"
)

// Setup is the first message to an eye.
type Setup struct {
	Version int    `json:"version"`
	Vision  Vision `json:"vision"`
	Memory  uint64 `json:"memory"`
}

// Request is a message to an eye. Exactly one field is set.
type Request struct {
	Setup *Setup `json:"setup,omitempty"`
	Open  *Open  `json:"open,omitempty"`
	Next  *Next  `json:"next,omitempty"`
}

// Open asks for a source.
type Open struct {
	Name    string        `json:"name"`
	Roots   []string      `json:"roots,omitempty"`
	Gate    Gate          `json:"gate"`
	AsIs    bool          `json:"as_is,omitempty"`
	Faces   int           `json:"faces"`
	Picture int           `json:"picture,omitempty"`
	Pixels  bool          `json:"pixels,omitempty"`
	FPS     float64       `json:"fps,omitempty"`
	Spare   bool          `json:"spare,omitempty"`
	Live    bool          `json:"live,omitempty"`
	Pace    bool          `json:"pace,omitempty"`
	After   *int          `json:"after,omitempty"`
	Timeout time.Duration `json:"timeout"`
	Rotate  face.Rotation `json:"rotate,omitempty"`
}

// openJSON is an Open in a message. The names of files are bytes, and not always UTF-8.
type openJSON struct {
	plainOpen
	Name  []byte   `json:"name"`
	Roots [][]byte `json:"roots,omitempty"`
}

type plainOpen Open

// MarshalJSON implements [json.Marshaler].
func (o Open) MarshalJSON() ([]byte, error) {
	j := openJSON{plainOpen: plainOpen(o), Name: []byte(o.Name)}
	for _, root := range o.Roots {
		j.Roots = append(j.Roots, []byte(root))
	}
	return json.Marshal(j)
}

// UnmarshalJSON implements [json.Unmarshaler].
func (o *Open) UnmarshalJSON(b []byte) error {
	var j openJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*o = Open(j.plainOpen)
	o.Name, o.Roots = string(j.Name), nil
	for _, root := range j.Roots {
		o.Roots = append(o.Roots, string(root))
	}
	return nil
}

// Next asks for the next frame.
type Next struct {
	Picture bool `json:"picture,omitempty"` // send a picture of the whole frame
	Look    bool `json:"look,omitempty"`    // hold no face
	// Ahead is the number of further frames that the eye may send without a request, as long as they show nobody. With
	// Sure, faces in them may be held, too.
	Ahead int  `json:"ahead,omitempty"`
	Sure  bool `json:"sure,omitempty"`
	Renew bool `json:"renew,omitempty"` // as if the source began with this frame
}

// mostAhead is the greatest number of frames of one request. Without movement, a request and an answer per frame would
// take longer than the work on the frame.
const mostAhead = 64

// mostRequest is the greatest size of a request in bytes. A folder may have many recordings with long names.
const mostRequest = 64 << 20

// ReadRequest reads a request of a program. The error comes from r or tells that the request is too large or malformed.
func ReadRequest(r io.Reader) (q Request, err error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return q, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n > mostRequest {
		return q, fmt.Errorf("request of %d bytes; %d are allowed", n, mostRequest)
	}
	var b bytes.Buffer
	if _, err := io.CopyN(&b, r, int64(n)); err != nil {
		return q, err
	}
	return q, json.Unmarshal(b.Bytes(), &q)
}
