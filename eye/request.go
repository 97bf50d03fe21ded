// SPDX-License-Identifier: Apache-2.0

package eye

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
}

// mostRequest is the greatest size of a request in bytes. A folder may have many recordings with
// long names.
const mostRequest = 64 << 20

// requestDecoding takes any bytes for the name of a file. The eye trusts the program.
var requestDecoding, _ = cbor.DecOptions{UTF8: cbor.UTF8DecodeInvalid}.DecMode()

// AppendRequest appends an encoded request to b, for [ReadRequest].
func AppendRequest(b []byte, q Request) []byte { return appendBody(b, q) }

// ReadRequest reads a request of a program. The error comes from r or tells that the request is too
// large or malformed.
func ReadRequest(r io.Reader) (q Request, err error) {
	b, err := readBody(r, mostRequest)
	if err != nil {
		return q, err
	}
	return q, requestDecoding.Unmarshal(b, &q)
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

// ErrVision is wrapped by errors of [Eye.Open] about the networks, and not the source.
var ErrVision = errors.New("the networks cannot be used")

// failure is an error that an eye has sent.
type failure struct {
	text string
	is   []error
}

func failed(m Message, more ...error) *failure {
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
