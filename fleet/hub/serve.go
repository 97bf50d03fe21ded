// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Limits of requests.
const (
	mostRequests  = 4096           // that wait
	largestStatus = fleet.MaxValue // it may name hundreds of devices
	requestTime   = 30 * time.Second
	tryTime       = 3 * time.Second // of one request to JetStream
)

// service keeps the records of the admin key and answers requests, one after the other.
type service struct {
	Options
	*roster
	server  *embedded // nil in a cluster
	pipes   *limiter  // nil in a cluster
	nc      *nats.Conn
	js      jetstream.JetStream
	work    chan *nats.Msg
	running sync.WaitGroup // goroutines of Serve
}

// note is the file by which commands on this machine find the running server.
type note struct {
	URL   string `json:"url"`
	Seed  string `json:"seed,omitempty"` // of a key that lives as long as the server runs
	Creds string `json:"creds,omitempty"`
}

// Serve runs the server of a fleet until ctx ends, or until it cannot continue, for example because the disk is full.
// It needs no admin key.
func Serve(ctx context.Context, o Options) error {
	s, err := open(o)
	if err != nil {
		return err
	}
	defer s.close()
	var devices, metrics net.Listener
	local := s.Cluster
	if s.server != nil {
		if err := s.certificate(); err != nil {
			return err
		}
		if devices, err = net.Listen("tcp", s.Listen); err != nil {
			return fmt.Errorf("the server cannot listen: %w; give another address with --listen", err)
		}
		defer devices.Close()
		local = "tls://" + localAddress(devices.Addr().String())
	}
	if s.Metrics != "" {
		if metrics, err = net.Listen("tcp", s.Metrics); err != nil {
			return fmt.Errorf("the metrics have no address: %w; give another one with --metrics", err)
		}
		defer metrics.Close()
	}
	if err := s.load(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer s.running.Wait()
	defer cancel()
	if _, err := s.nc.Subscribe(fleet.RoomPrefix+"*", s.relay); err != nil {
		return err
	}
	if err := s.passReads(ctx); err != nil {
		return err
	}
	for _, subject := range []string{fleet.JoinPrefix + "*", fleet.GivePrefix + "*", fleet.AskPrefix + "*",
		fleet.AtPrefix + "*", listSubject} {
		if _, err := s.nc.Subscribe(subject, s.take); err != nil {
			return err
		}
	}
	if err := s.nc.Flush(); err != nil {
		return err
	}
	if err := s.note(local); err != nil {
		return err
	}
	defer os.Remove(filepath.Join(s.Folder, noteFile))
	ready := Ready{URL: s.url(), Fleet: s.fleet, Devices: len(s.present())}
	s.running.Go(func() { s.run(ctx) })
	var ended chan struct{}
	if s.server != nil {
		ended = s.server.ended
		s.pipes = newLimiter(devices, s.server.server.Addr().String(), s.Connections, s.server.gate)
		s.server.gate.listen(s.pipes)
		s.running.Go(func() { s.pipes.run(ctx) })
	}
	if metrics != nil {
		ready.Metrics = metrics.Addr().String()
		s.running.Go(func() { s.serveMetrics(ctx, metrics) })
	}
	s.running.Go(func() { s.notify(ctx) })
	if s.Ready != nil {
		s.Ready(ready)
	}
	select {
	case <-ctx.Done():
		return nil
	case <-ended:
		return errors.New("the NATS server has ended or cannot write its files; read its messages and check the " +
			"disk; then start it again: stored values are not lost")
	}
}

// open starts or connects to the NATS server.
func open(o Options) (_ *service, err error) {
	o.defaults()
	if o.Cluster != "" {
		if err := fleet.CheckURL(o.Cluster); err != nil {
			return nil, err
		}
	}
	id, err := Fleet(o.Folder)
	if err != nil {
		return nil, err
	}
	s := &service{Options: o, roster: newRoster(id), work: make(chan *nats.Msg, mostRequests)}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if o.Cluster == "" {
		s.started = time.Now()
		if s.server, err = startEmbedded(o.Folder, s.roster, o.Connections, o.Log); err == nil {
			s.server.gate.give = s.give
			s.nc, err = s.server.connect()
		}
	} else {
		s.nc, err = dialCluster(o.Cluster, o.Creds)
	}
	if err != nil {
		return nil, err
	}
	s.js, err = jetstream.New(s.nc)
	return s, err
}

func (s *service) close() {
	if s.nc != nil {
		s.nc.Close()
	}
	if s.server != nil {
		s.server.close()
	}
}

// certificate reads the certificate, also again after a new one was made.
func (s *service) certificate() error {
	c, err := certificate(s.Folder, s.fleet)
	if err == nil {
		s.server.cert.Store(c)
	}
	return err
}

// load reads all records and checks the streams. It must know all revocations before the first device connects.
func (s *service) load(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	known, err := s.streams(ctx)
	if err != nil {
		return err
	}
	for _, info := range known {
		if info.State.LastTime.After(s.since) {
			s.since = info.State.LastTime
		}
	}
	if data, err := safefile.ReadBytes(filepath.Join(s.Folder, restoredFile)); err == nil {
		if at, err := time.Parse(time.RFC3339, string(bytes.TrimSpace(data))); err == nil && at.Before(s.since) {
			s.since = at
		}
	}
	if err := s.ensure(ctx, admin, known); err != nil {
		return err
	}
	err = pull(ctx, s.nc, admin, func(v fleet.Stored) error {
		if _, _, err := s.members.Add(v.Data); err != nil {
			s.Log.Warn("a stored record is skipped", "name", v.Name, "error", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, m := range s.members.Devices() {
		if err := s.settle(ctx, m.ID, known); err != nil {
			return err
		}
	}
	switch data, err := safefile.ReadBytes(filepath.Join(s.Folder, addressFile)); {
	case errors.Is(err, fs.ErrNotExist) && s.members.URL() != "":
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	default:
		if _, err := Address(s.Folder); err != nil {
			return err
		}
		return s.add(ctx, data, false)
	}
}

// note tells commands on this machine where the server is.
func (s *service) note(url string) error {
	n := note{URL: url, Creds: s.Creds}
	if s.server != nil {
		seed, err := s.server.key.Seed()
		if err != nil {
			return err
		}
		n.Seed = string(seed)
	}
	data, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return safefile.Write(filepath.Join(s.Folder, noteFile), data)
}
