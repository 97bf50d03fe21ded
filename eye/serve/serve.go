// SPDX-License-Identifier: Apache-2.0

// Package serve is the program of an eye: it opens cameras and recordings, finds faces in them, and
// sends the results over a socket to a program that uses package eye.
//
// [Main] runs the whole process.
//
// # What an eye may do
//
// It first opens its networks, which are files of the system. Before it opens its first source it
// gives up all other rights: Landlock allows only the files of the source, and seccomp allows no
// other program, no other process, and no socket except to the camera of a URL. It cannot use more
// memory than its limit, writes no file, leaves no core dump, and ends when the program ends.
package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/user"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/faceauth/faceauth/eye"
	"github.com/faceauth/faceauth/facedet"
	"github.com/faceauth/faceauth/internal/backoff"
	"github.com/faceauth/faceauth/internal/cv"
	"github.com/faceauth/faceauth/internal/network"
	"github.com/faceauth/faceauth/internal/wire"
	"github.com/faceauth/faceauth/models"
	"github.com/faceauth/faceauth/pipeline"
	"github.com/faceauth/faceauth/preprocess"
)

// Main runs an eye: it answers at the socket with the given file number until the program at the
// other end closes it. That program must run as the named user, or as this process's user if "of"
// is empty.
func Main(ctx context.Context, file int, of string) error {
	asks := os.Geteuid()
	if of != "" {
		u, err := user.Lookup(of)
		if err == nil {
			asks, err = strconv.Atoi(u.Uid)
		}
		if err != nil {
			return fmt.Errorf("finding the user of the eye: %w", err)
		}
	}
	f := os.NewFile(uintptr(file), "program")
	if f == nil {
		return errors.New("only faceauth can start an eye: the socket is missing")
	}
	conn, err := net.FileConn(f)
	f.Close()
	if err != nil {
		return fmt.Errorf("only faceauth can start an eye: the socket cannot be used: %w", err)
	}
	defer conn.Close()
	line, err := strconv.Atoi(os.Getenv(wire.LineVariable))
	if err != nil || of != "" {
		line = -1 // started by the system manager: it reads no URL
	}
	if uid, err := wire.Peer(conn); err != nil || uid != asks {
		return fmt.Errorf("user %d asks for an eye, and this eye serves only user %d: %w", uid,
			asks, errors.Join(err, os.ErrPermission))
	}
	return serve(ctx, conn, line)
}

type request = wire.Request[eye.Vision, eye.Options]

// server is the state of an eye.
type server struct {
	conn      net.Conn
	detector  facedet.Detector
	extractor preprocess.Extractor
	liveness  *preprocess.Liveness
	line      int // number of the file for connections that the program makes, or -1
	infrared  bool
	sandboxed bool
	report    wire.Report
	addresses map[string]string // addresses of the hosts of URLs

	source   facedet.Source
	pipeline *pipeline.Pipeline
	open     wire.Open[eye.Options]
	picture  bool // the next frame needs a picture
	told     time.Time
	trimmed  time.Time
	looked   bool // faces were looked for since C++ gave memory back

	mu     sync.Mutex // guards the fields below, and writing
	busy   bool       // a request waits for its answer
	broken error      // of the connection
}

func serve(ctx context.Context, conn net.Conn, line int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	requests := make(chan request)
	go func() {
		defer close(requests)
		for {
			var q request
			err := wire.ReadRequest(conn, &q)
			if err != nil {
				// The program has ended. A decoder that hangs would keep this process alive for
				// ever.
				time.AfterFunc(time.Second, func() { os.Exit(1) })
				cancel()
				return
			}
			select {
			case requests <- q:
			case <-ctx.Done():
				return
			}
		}
	}()
	s := &server{conn: conn, line: line}
	defer s.close()
	// loading the libraries took its time
	if err := s.send(wire.Message{Kind: wire.Beat}); err != nil {
		return err
	}
	var beating sync.WaitGroup
	beating.Go(func() { s.beat(ctx) })
	defer func() {
		cancel()
		conn.SetWriteDeadline(time.Unix(1, 0))
		beating.Wait()
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case q, ok := <-requests:
			if !ok {
				return nil
			}
			if err := s.handle(ctx, q); err != nil {
				return err
			}
		}
	}
}

func (s *server) close() {
	if s.source != nil {
		s.source.Close()
	}
	if s.liveness != nil {
		s.liveness.Close()
	}
	if s.detector != nil {
		s.detector.Close()
	}
	if s.extractor != nil {
		s.extractor.Close()
	}
}

// send sends a message. An error ends the eye.
func (s *server) send(m wire.Message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.write(m)
}

// write sends a message. The lock must be held.
func (s *server) write(m wire.Message) error {
	_, err := s.conn.Write(wire.Append(nil, m))
	if err != nil {
		s.broken = err
	}
	return s.broken
}

// lost returns the error of the connection.
func (s *server) lost() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken
}

// beatEvery is the least time between two beats.
const beatEvery = time.Second

// beat tells the program, while it waits for an answer, that networks have run: a large picture is
// looked at in many parts, and a slow machine takes long for each.
func (s *server) beat(ctx context.Context) {
	before := network.Ran()
	for backoff.Wait(ctx, beatEvery) {
		now := network.Ran()
		s.mu.Lock()
		if s.busy && now != before {
			s.write(wire.Message{Kind: wire.Beat})
		}
		s.mu.Unlock()
		before = now
	}
}

// work notes whether a request waits for its answer.
func (s *server) work(busy bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = busy
}

// handle answers a request. The error comes from the connection.
func (s *server) handle(ctx context.Context, q request) error {
	s.work(true)
	defer s.work(false)
	var err error
	switch {
	case q.Setup != nil:
		err = s.setup(*q.Setup)
	case s.extractor == nil:
		err = errors.New("the first request to an eye must be its setup")
	case q.Open != nil:
		err = s.openSource(ctx, *q.Open)
	case q.Next != nil && s.pipeline != nil:
		err = s.next(ctx, *q.Next)
	default:
		err = errors.New("there is no source")
	}
	if lost := s.lost(); lost != nil {
		return lost
	}
	if err != nil {
		return s.send(wire.Failure(err))
	}
	return nil
}

// setup opens the networks.
func (s *server) setup(q wire.Setup[eye.Vision]) error {
	if s.extractor != nil {
		return errors.New("an eye can be set up only once")
	}
	if q.Version != wire.Version {
		return fmt.Errorf(
			"the program uses version %d, and its eye version %d; after an upgrade, restart both",
			q.Version, wire.Version)
	}
	if err := confine(q.Memory); err != nil {
		return err
	}
	cv.OneThread() // as many eyes as cameras share the processors
	d, e, err := Open(q.Vision)
	if err != nil {
		return err
	}
	s.detector, s.extractor, s.infrared = d, e, q.Vision.Infrared
	if q.Vision.Liveness {
		d, err := models.Of(models.Liveness, q.Vision.LivenessModel)
		if err != nil {
			return err
		}
		s.liveness, err = preprocess.NewLiveness(d, q.Vision.Models)
		if err != nil {
			return err
		}
	}
	s.report.Version = wire.Version
	if n, is := d.(*facedet.Network); is {
		s.report.Runs = n.Runs()
	}
	if err := s.send(wire.Message{Kind: wire.Ready, Report: s.report,
		Space: e.Space().ID}); err != nil {
		return err
	}
	s.trim()
	return nil
}

// trimEvery is the time after which an eye, while nothing moves, gives memory back again.
const trimEvery = 30 * time.Second

// trim gives memory that is free back to the system: after the setup the files of the networks, as
// an eye waits or looks for long.
func (s *server) trim() {
	debug.FreeOSMemory()
	cv.Trim()
	s.trimmed = time.Now()
}

// next answers with the next frame.
func (s *server) next(ctx context.Context, q wire.Next) error {
	s.picture, s.told = q.Picture, time.Now()
	s.pipeline.Look(q.Look...)
	f, err := s.pipeline.Next(ctx)
	switch {
	case s.lost() != nil:
		return s.lost()
	case errors.Is(err, io.EOF):
		return s.send(wire.Message{Kind: wire.End, Count: s.source.Count()})
	case err != nil:
		return err
	}
	switch {
	case !s.pipeline.Passed():
		s.looked = true
	case time.Since(s.trimmed) > trimEvery:
		s.trim()
	case s.looked:
		cv.Trim()
		s.looked = false
	}
	return s.send(wire.Message{Kind: wire.Image, Count: s.source.Count(), Frame: f})
}
