// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"io"
	"io/fs"
	"strings"
	"unicode"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/models"
	"github.com/fxamacker/cbor/v2"
)

// Setup is the first message to an eye. V is what it says of the networks.
type Setup[V any] struct {
	Version int
	Vision  V
	Memory  uint64
}

// Request is a message to an eye. Exactly one field is set.
type Request[V, O any] struct {
	Setup *Setup[V]
	Open  *Open[O]
	Next  *Next
}

// Open asks for a source. O is how it is read; its Roots have the name, too.
type Open[O any] struct {
	Name    string
	Options O
}

// Next asks for the next frame.
type Next struct {
	Picture bool  // send a picture of the whole frame
	Look    []int // hold no face of these tracks
}

// MostRequest is the greatest size of a request in bytes. A folder may have many recordings with
// long names.
const MostRequest = 64 << 20

// requestDecoding takes any bytes for the name of a file. The eye trusts the program.
var requestDecoding, _ = cbor.DecOptions{UTF8: cbor.UTF8DecodeInvalid}.DecMode()

// AppendRequest appends an encoded [Request] to b.
func AppendRequest(b []byte, q any) []byte { return appendBody(b, q) }

// ReadRequest reads a [Request] of a program into q. The error comes from r or tells that the
// request is too large or malformed.
func ReadRequest(r io.Reader, q any) error {
	b, err := readBody(r, MostRequest)
	if err != nil {
		return err
	}
	return requestDecoding.Unmarshal(b, q)
}

// Code is the kind of an error of an eye.
type Code byte

// meanings maps each code to an error; nil if only the text matters.
var meanings = []error{
	nil, fs.ErrNotExist, fs.ErrPermission, face.ErrNoCamera, face.ErrNotVideo, face.ErrNoImages,
	face.ErrTimeout,
	face.ErrScheme,
	face.ErrServer, face.ErrRefused, models.ErrMissing, models.ErrHash, models.ErrShape,
	models.ErrDescription,
}

var lastCode = Code(len(meanings))

// failure is an error that an eye has sent.
type failure struct {
	text string
	is   []error
}

// Err returns the error of a message of the kind [Failed], which wraps more errors, too.
func (m Message) Err(more ...error) error {
	if m.Code > 0 {
		more = append(more, meanings[m.Code])
	}
	return &failure{m.Text, more}
}

func (f *failure) Error() string { return f.text }

// Unwrap returns the errors of the eye's code.
func (f *failure) Unwrap() []error { return f.is }

// Failure returns the message about an error.
func Failure(err error) Message {
	m := Message{Kind: Failed, Text: Printable(err.Error())}
	for i, meaning := range meanings {
		if meaning != nil && errors.Is(err, meaning) {
			m.Code = Code(i)
			break
		}
	}
	return m
}

// Printable returns a text as a message may hold it: one line of limited length.
func Printable(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case !unicode.IsPrint(r) || r == unicode.ReplacementChar:
			return '?'
		}
		return r
	}, s)
	if len(s) > mostText {
		s = strings.ToValidUTF8(s[:mostText-4], "") + "..."
	}
	return s
}
