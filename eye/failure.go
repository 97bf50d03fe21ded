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

// Code says what kind of error an eye has met.
type Code byte

// meanings has the error that each code stands for; nil where the text is all.
var meanings = []error{
	nil, fs.ErrNotExist, fs.ErrPermission, face.ErrNoCamera, face.ErrNotVideo, face.ErrNoImages, face.ErrTimeout,
	face.ErrScheme,
	face.ErrServer, models.ErrMissing, models.ErrHash, models.ErrShape, models.ErrDescription,
}

var lastCode = Code(len(meanings))

// ErrVision is what errors of [Eye.Open] are that come from the networks and not from the source.
var ErrVision = errors.New("the networks cannot be used")

// failure is an error that an eye has met, in its words.
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

// Unwrap returns the error that the code of the eye stands for.
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

// Printable returns a text as a message may hold it: in one line, and not too long.
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
