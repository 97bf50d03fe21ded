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
	"sync/atomic"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/time/rate"
)

// Limits of what the service does for one device or token.
const (
	requestsPerSecond = 10
	requestsAtOnce    = 100
	mostRequests      = 4096 // that wait
	mostSenders       = 50_000
	largestStatus     = fleet.MaxValue // it may name hundreds of devices
	requestTime       = 30 * time.Second
	droppedFor        = time.Minute // how long it is told that requests of a device were dropped
)

// service keeps the records of the admin key and answers requests. One goroutine owns its fields, see run; others may
// use calls, work and rates.
type service struct {
	Options
	fleet  string
	server *embedded // nil in a cluster
	pipes  *limiter  // nil in a cluster
	nc     *nats.Conn
	js     jetstream.JetStream

	members  *fleet.Members
	used     map[string]string // devices by the tokens that admitted them
	unstored map[string][]byte // known records that are not stored, or whose effect is incomplete
	status   map[string]fleet.Status
	heard    map[string]time.Time // when a device last sent a request
	since    time.Time            // of the newest stored value at the start

	work  chan *nats.Msg
	calls chan func(context.Context)
	mu    sync.Mutex
	rates map[string]*sender // by device, token or stream

	running sync.WaitGroup // goroutines of Serve
}

// sender is a device or token that sends requests.
type sender struct {
	limit   *rate.Limiter
	dropped time.Time // when a request was last dropped

	reads  atomic.Int32 // requests to read that were not answered
	turns  chan struct{}
	volume *rate.Limiter
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
	ready := Ready{URL: s.members.URL(), Fleet: s.fleet, Devices: len(s.present())}
	s.running.Go(func() { s.run(ctx) })
	var ended chan struct{}
	if s.server != nil {
		ended = s.server.ended
		s.pipes = newLimiter(devices, s.server.server.Addr().String(), s.Connections, s.server.gate)
		s.server.gate.listen(s.pipes, s.since)
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
	s := &service{Options: o, used: make(map[string]string), unstored: make(map[string][]byte),
		status: make(map[string]fleet.Status), heard: make(map[string]time.Time),
		rates: make(map[string]*sender), work: make(chan *nats.Msg, mostRequests),
		calls: make(chan func(context.Context))}
	if s.fleet, err = Fleet(o.Folder); err != nil {
		return nil, err
	}
	s.members = fleet.NewMembers(s.fleet)
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if o.Cluster == "" {
		if s.server, err = startEmbedded(o.Folder, s.fleet, o.Connections, o.Log); err == nil {
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
	known := make(map[string]*jetstream.StreamConfig)
	list := s.js.ListStreams(ctx)
	for info := range list.Info() {
		known[info.Config.Name] = &info.Config
		if info.State.LastTime.After(s.since) {
			s.since = info.State.LastTime
		}
	}
	if err := list.Err(); err != nil {
		return storing(err)
	}
	if data, err := safefile.ReadBytes(filepath.Join(s.Folder, restoredFile)); err == nil {
		if at, err := time.Parse(time.RFC3339, string(bytes.TrimSpace(data))); err == nil && at.Before(s.since) {
			s.since = at
		}
	}
	if err := s.ensure(ctx, admin, known); err != nil {
		return err
	}
	err := pull(ctx, s.nc, admin, func(v fleet.Stored) error {
		if _, _, err := s.learn(v.Data); err != nil {
			s.Log.Warn("a stored record is skipped", "name", v.Name, "error", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for id := range s.devices() {
		if err := s.settle(ctx, id, known); err != nil {
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
