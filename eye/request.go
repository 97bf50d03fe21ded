// SPDX-License-Identifier: Apache-2.0

package eye

import (
	"io"

	"github.com/fxamacker/cbor/v2"
)

// Setup is the first message to an eye.
type Setup struct {
	Version int
	Vision  Vision
	Memory  uint64
}

// Request is a message to an eye. Exactly one field is set.
type Request struct {
	Setup *Setup
	Open  *Open
	Next  *Next
}

// Open asks for a source. Roots has its name, too.
type Open struct {
	Name string
	Options
}

// Next asks for the next frame.
type Next struct {
	Picture bool // send a picture of the whole frame
	Look    bool // hold no face
	// Ahead is the number of further frames that the eye may send without a request, as long as they show nobody. With
	// Sure, faces in them may be held, too.
	Ahead int
	Sure  bool
}

// mostAhead is the greatest number of frames of one request. Without movement, a request and an answer per frame would
// take longer than the work on the frame.
const mostAhead = 64

// mostRequest is the greatest size of a request in bytes. A folder may have many recordings with long names.
const mostRequest = 64 << 20

// requestDecoding takes any bytes for the name of a file. The eye trusts the program.
var requestDecoding, _ = cbor.DecOptions{UTF8: cbor.UTF8DecodeInvalid}.DecMode()

// AppendRequest appends an encoded request to b, for [ReadRequest].
func AppendRequest(b []byte, q Request) []byte { return appendBody(b, q) }

// ReadRequest reads a request of a program. The error comes from r or tells that the request is too large or malformed.
func ReadRequest(r io.Reader) (q Request, err error) {
	b, err := readBody(r, mostRequest)
	if err != nil {
		return q, err
	}
	return q, requestDecoding.Unmarshal(b, &q)
}
