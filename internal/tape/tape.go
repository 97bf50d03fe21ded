// SPDX-License-Identifier: Apache-2.0

// Package tape stands in for faceauth-eye in tests: [Main] is a program that speaks the eye's
// protocol without OpenCV and without networks.
//
// It plays sources of two kinds. People who are made up: a [Film] in a file, pictures by [JPEG] and
// [PNG], alone, in a folder, or sent by a network camera. And tapes of real sources: what a real
// eye answered when it was first asked the same about the same file, kept in a folder of the user's
// cache (see [Prepare]). Nothing of them is in the repository.
//
// Everything that needs the real program, as the commands of faceauth-eye or a camera, is given to
// it.
package tape

import (
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"syscall"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/face"
	"github.com/faceauth/faceauth/internal/input"
	"github.com/faceauth/faceauth/internal/wire"
	"github.com/faceauth/faceauth/models"
)

// Main is the program. It ends the process.
func Main() {
	log.SetFlags(0)
	log.SetPrefix("tape: ")
	if os.Getenv("FACEAUTH_EYE_LOADER") != "" && os.Getenv(realOnly) == "" {
		os.Exit(0) // a stand-in cannot be copied
	}
	stop(0)
	if len(os.Args) > 1 || os.Getenv(realOnly) != "" {
		become()
	}
	file := os.NewFile(3, "program")
	program, err := net.FileConn(file)
	if err != nil {
		log.Fatal(err)
	}
	file.Close()
	s := &stand{program: program}
	for n := 1; ; n++ {
		var q request
		err := wire.ReadRequest(program, &q)
		if err != nil {
			os.Exit(0) // the program has ended
		}
		stop(n)
		m, err := s.answer(q)
		if err != nil {
			m = [][]byte{wire.Append(nil, wire.Failure(err))}
		}
		for _, b := range m {
			if _, err := program.Write(b); err != nil {
				os.Exit(0)
			}
		}
	}
}

// Stops is a variable of the environment: whom the stand-in stops, as by SIGSTOP, and at which of
// its answers. "eye 1" stops itself before the first one, "program 2" the program before the second
// one, "both 0" both when an eye has just been started, which may be a real one.
const Stops = "FACEAUTH_EYE_STOPS"

// stop stops whom [Stops] names at the n-th answer.
func stop(n int) {
	var who string
	var at int
	_, err := fmt.Sscan(os.Getenv(Stops), &who, &at)
	if err != nil || at != n {
		return
	}
	if who != "eye" {
		syscall.Kill(os.Getppid(), syscall.SIGSTOP)
	}
	if who != "program" {
		syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	}
}

// become continues as the real program.
func become() {
	real := os.Getenv(realEye)
	if real == "" {
		log.Fatal("this needs the real faceauth-eye, and it was not built")
	}
	log.Fatal(syscall.Exec(real, append([]string{"faceauth-eye"}, os.Args[1:]...), os.Environ()))
}

// stand is the state of the stand-in.
type stand struct {
	program net.Conn
	setup   wire.Setup[eye.Vision]
	space   face.Space
	made    *viewer // the present source, one of both
	taped   *player
}

type request = wire.Request[eye.Vision, eye.Options]

// answer returns the messages that answer a request.
func (s *stand) answer(q request) ([][]byte, error) {
	switch {
	case q.Setup != nil:
		return s.prepare(*q.Setup)
	case q.Open != nil:
		return s.open(*q.Open)
	case q.Next != nil && s.made != nil:
		m, err := s.made.next(*q.Next)
		if err != nil {
			return nil, err
		}
		return [][]byte{wire.Append(nil, m)}, nil
	case q.Next != nil && s.taped != nil:
		return s.taped.ask(q)
	}
	return nil, errors.New("there is no source")
}

// prepare answers the setup. Networks that come with the program need not be opened for it; a real
// eye says what is wrong with others.
func (s *stand) prepare(q wire.Setup[eye.Vision]) ([][]byte, error) {
	if q.Version != wire.Version {
		return nil, fmt.Errorf("the program uses version %d, and its tapes version %d", q.Version,
			wire.Version)
	}
	s.setup = q
	v := q.Vision
	switch {
	case v.Features == "pixels":
		s.space = models.Pixels()
	case v.EmbeddingModel == "":
		s.space = models.Default(models.Embedding).Space()
	default:
		d, err := models.ParseDescription(v.EmbeddingModel)
		if err != nil {
			return nil, err
		}
		s.space = d.Space()
	}
	if v.EmbeddingModel != "" || v.DetectorModel != "" || v.LivenessModel != "" {
		p := newPlayer(q, nil)
		defer p.close()
		return p.ask(request{Setup: &q})
	}
	m := wire.Message{Kind: wire.Ready, Report: wire.Report{Version: wire.Version},
		Space: s.space.ID}
	return [][]byte{wire.Append(nil, m)}, nil
}

func (s *stand) open(q wire.Open[eye.Options]) ([][]byte, error) {
	if s.made != nil {
		s.made.close()
	}
	if s.taped != nil {
		s.taped.close()
	}
	s.made, s.taped = nil, nil
	src, err := open(q)
	if err == nil {
		s.made = &viewer{source: src, space: s.space, liveness: s.setup.Vision.Liveness, open: q}
		m := wire.Message{Kind: wire.Opened, Report: wire.Report{Version: wire.Version},
			Count: src.count()}
		return [][]byte{wire.Append(nil, m)}, nil
	}
	if input.IsURL(q.Name) && !errors.Is(err, face.ErrNotVideo) && !errors.Is(err, errNoFilm) {
		return nil, err
	}
	if os.Getenv(realEye) == "" && os.Getenv(tapes) == "" {
		return nil, fmt.Errorf("opening source %s: %w", input.Shown(q.Name), face.ErrNotVideo)
	}
	s.taped = newPlayer(s.setup, &q)
	return s.taped.ask(request{Open: &q})
}
