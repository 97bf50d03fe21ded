// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/fleet/ledger"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
	"golang.org/x/time/rate"
)

// Options say how [Serve] serves a fleet.
type Options struct {
	Folder   string // of the server: its certificate, the log, the tokens
	AdminKey string // file of the key that signs admissions; made where there is none. Default: admin.nk in Folder
	// Start starts the NATS server of this fleet: embedded.Start. It is not called where there is a Cluster.
	Start  func(ServerOptions) (Server, error)
	Listen string // its address. Default ":4222"
	// URL is how devices reach the server, such as tls://office.local:4222. Default: an address of this machine.
	URL string
	// Cluster is the URL of a NATS cluster with JetStream that is used in place of the embedded server, and Creds the file
	// with which it lets this service in.
	Cluster, Creds string
	Replicas       int // of the log, in a cluster. Default 1
	// Callout is the account of the cluster in which the fleet is, where the cluster asks this service who may connect
	// (auth callout, with the fleet's id as the issuer). Empty for a cluster that decides itself.
	Callout string
	Limits  Limits
	// Restored says that the log was put back to an earlier state, or lost, and is to go on from there. Devices then
	// give back what they know of the rest. Say it for one start.
	Restored bool
	// SnapshotEvery is after how many entries of the log there is a new snapshot, and Keep how many entries before it stay
	// in the log for devices that were away for a while. Defaults 4,000.
	SnapshotEvery, Keep uint64
	Log                 *slog.Logger
	// Ready is told once, when devices can connect. May be nil.
	Ready func(Ready)
}

// Ready says what a server is when devices can connect.
type Ready struct {
	URL     string
	Fleet   string
	Devices int // that are members
}

// Defaults of [Options]. A snapshot comes before devices would make one themselves.
const (
	defaultListen   = ":4222"
	defaultSnapshot = 4000
)

// service is what signs admissions and keeps the log of a fleet small.
type service struct {
	Options
	admin  nkeys.KeyPair
	names  subjects
	server Server // nil in a cluster
	conn   *Conn
	stream jetstream.Stream
	bucket jetstream.ObjectStore
	tokens *invitations
	known  bool // the folder was that of the fleet before this start
	url    string
	pin    []byte

	saying sync.Mutex               // one entry of the admin key at a time
	unsaid *unsaid                  // one of which it is not known whether it is stored
	nonces *nonceCache              // of commands that were carried out
	flows  map[string]*rate.Limiter // how much each device says; of the goroutine that follows
	paused map[string]time.Time     // until when nothing of a device is taken; of the same goroutine
	passed rate.Sometimes           // a device that says garbage does not fill the journal
	tight  bool                     // the disk is nearly full, and the log takes nothing

	mu       sync.Mutex
	ledger   *ledger.Ledger
	spoken   map[uint64][]byte // entries of the admin key, by their counter
	applied  chan struct{}     // closed and renewed when an entry was applied
	purges   []purge
	barred   *barred
	snapshot uint64 // place of the newest snapshot
	places   map[string]Place
}

// Serve runs the server of a fleet until ctx ends, or until it cannot go on. At the first start it makes the folder, the
// admin key and so the fleet.
func Serve(ctx context.Context, o Options) error {
	o.Listen, o.Replicas = cmp.Or(o.Listen, defaultListen), cmp.Or(o.Replicas, 1)
	o.SnapshotEvery, o.Keep = cmp.Or(o.SnapshotEvery, defaultSnapshot), cmp.Or(o.Keep, defaultSnapshot)
	o.AdminKey = cmp.Or(o.AdminKey, filepath.Join(o.Folder, "admin.nk"))
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	for _, u := range []string{o.URL, o.Cluster} {
		if u != "" {
			if err := CheckURL(u); err != nil {
				return err
			}
		}
	}
	if err := os.MkdirAll(o.Folder, 0o700); err != nil {
		return err
	}
	s := &service{
		Options: o, flows: make(map[string]*rate.Limiter), paused: make(map[string]time.Time),
		passed: rate.Sometimes{First: 5, Interval: 10 * time.Second}, spoken: make(map[uint64][]byte),
		applied: make(chan struct{}), places: make(map[string]Place), nonces: newNonceCache(),
	}
	var err error
	if s.admin, s.names.fleet, s.known, err = adminKey(o.AdminKey, o.Folder); err != nil {
		return err
	}
	if s.tokens, err = openInvitations(filepath.Join(o.Folder, "invitations")); err != nil {
		return err
	}
	if s.barred, err = openBarred(filepath.Join(o.Folder, "barred")); err != nil {
		return err
	}
	s.readPlaces()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if o.Cluster == "" {
		if o.Start == nil {
			return errors.New("there is neither a server to start nor a cluster; give the URL of one by --nats")
		}
		s.server, err = o.Start(ServerOptions{Folder: o.Folder, Listen: o.Listen, Fleet: s.names.fleet, Limits: o.Limits.defaults(), Log: o.Log})
		if err != nil {
			return err
		}
		defer s.server.Close()
		s.pin = s.server.Pin()
	}
	if err := s.connect(ctx); err != nil {
		return err
	}
	defer s.conn.Close()
	if err := s.prepare(ctx); err != nil {
		return err
	}
	return s.run(ctx, cancel)
}

// connect makes the connection of the service.
func (s *service) connect(ctx context.Context) error {
	id := ""
	s.conn = newConn(s.names, "", func(err error) {
		if err != nil && ctx.Err() == nil {
			s.Log.Warn("the connection to the server ended", "error", err)
		}
	})
	var options []nats.Option
	address := s.Cluster
	if s.server != nil {
		public, err := s.server.Key().PublicKey()
		if err != nil {
			return err
		}
		id = public
		options = append(options, nats.InProcessServer(s.server), nats.Nkey(id, s.server.Key().Sign))
		address = ""
	} else {
		k, err := nkeys.CreateUser()
		if err != nil {
			return err
		}
		if id, err = k.PublicKey(); err != nil {
			return err
		}
		if s.Creds != "" {
			login, err := Creds(s.Creds)
			if err != nil {
				return err
			}
			options = append(options, login)
		}
	}
	s.conn.id = id
	var err error
	if s.conn.nc, err = dial(ctx, address, append(s.conn.options(), options...)...); err != nil {
		if errors.Is(err, ErrRefused) {
			return errors.New("the cluster does not let this service in; is the file of --creds the right one?")
		}
		return err
	}
	return s.conn.open()
}

// prepare brings the service to where the log is, and then lets devices in.
func (s *service) prepare(ctx context.Context) error {
	begin, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	var err error
	if s.stream, err = openStream(begin, s.conn.js, s.names, s.Limits, s.Replicas); err != nil {
		return err
	}
	if s.bucket, err = openBucket(begin, s.conn.js, s.names, s.Limits, s.Replicas); err != nil {
		return err
	}
	if err := s.restore(begin); err != nil {
		return err
	}
	last, err := s.conn.Last(begin)
	if err != nil {
		return err
	}
	// What the log says of devices is known before any of them comes in.
	if err := s.readTo(ctx, last); err != nil {
		return err
	}
	if err := s.lost(last); err != nil {
		return err
	}
	if err := s.goOn(begin, last); err != nil {
		return err
	}
	if !s.known {
		if err := noteFleet(s.Folder, s.names.fleet); err != nil {
			return err
		}
	}
	s.refresh()
	return nil
}

// readTo applies the log up to a place.
func (s *service) readTo(ctx context.Context, last uint64) error {
	reached := errors.New("reached")
	if s.seq() >= last {
		return nil
	}
	err := s.conn.Follow(ctx, s.seq(), func(seq uint64, data []byte) error {
		if err := s.take(seq, data); err != nil {
			return err
		}
		if seq >= last {
			return reached
		}
		return nil
	})
	if !errors.Is(err, reached) {
		return fmt.Errorf("reading the log: %w", err)
	}
	return nil
}

// restore begins with the newest snapshot.
func (s *service) restore(ctx context.Context) (err error) {
	seq, data, err := getSnapshot(ctx, s.bucket, s.names.fleet)
	if err == nil {
		var l *ledger.Ledger
		if l, err = ledger.Restore(s.names.fleet, bytes.NewReader(data)); err == nil && l.Seq() == seq {
			s.ledger, s.snapshot = l, seq
			return nil
		}
	}
	if errors.Is(err, ledger.ErrFuture) {
		return err
	}
	if err != nil && !errors.Is(err, fleet.ErrNoSnapshot) {
		info, err2 := s.stream.Info(ctx)
		if err2 != nil {
			return storage(err2)
		}
		if info.State.FirstSeq > 1 {
			return fmt.Errorf("the snapshot cannot be read, and the log no longer has what is in it: %w; put back a copy of %s", err, s.Folder)
		}
		s.Log.Warn("the snapshot cannot be read; the log has everything", "error", err)
	}
	s.ledger, err = ledger.New(s.names.fleet)
	return err
}

// run serves until ctx ends.
func (s *service) run(ctx context.Context, cancel context.CancelCauseFunc) error {
	asks, err := s.listen()
	if err != nil {
		return err
	}
	callout, err := s.listenCallout()
	if err != nil {
		return err
	}
	s.url = cmp.Or(s.URL, s.Cluster)
	local := s.Cluster
	if s.server != nil {
		if err := s.server.Listen(); err != nil {
			return err
		}
		here := s.server.Address()
		local = "tls://" + localAddress(here)
		s.url = cmp.Or(s.URL, "tls://"+outerAddress(here))
	}
	if err := s.note(local); err != nil {
		return err
	}
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel(nil)
	work.Go(func() { s.answer(ctx, asks) })
	work.Go(func() { s.follow(ctx, cancel) })
	work.Go(func() { s.keep(ctx) })
	work.Go(func() { s.answerCallout(ctx, callout) })
	if s.Ready != nil {
		s.Ready(Ready{URL: s.url, Fleet: s.names.fleet, Devices: len(s.members())})
	}
	select {
	case <-ctx.Done():
	case <-s.ended():
		cancel(errors.New("the NATS server cannot write its files any more, or has ended; see what it said; is the disk full? " +
			"free some room and start it again: what it has stored is there"))
	}
	s.writePlaces()
	return context.Cause(ctx)
}

// ended is closed when the embedded server ends by itself.
func (s *service) ended() <-chan struct{} {
	if s.server == nil {
		return nil
	}
	return s.server.Ended()
}
