// SPDX-License-Identifier: Apache-2.0

package eye

import (
	"errors"
	"io/fs"
	"strings"
	"unicode"

	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/models"
)

// Code is the kind of an error of an eye.
type Code byte

// meanings maps each code to an error; nil if only the text matters.
var meanings = []error{
	nil, fs.ErrNotExist, fs.ErrPermission, face.ErrNoCamera, face.ErrNotVideo, face.ErrNoImages, face.ErrTimeout,
	face.ErrScheme,
	face.ErrServer, models.ErrMissing, models.ErrHash, models.ErrShape, models.ErrDescription,
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
