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

// Options of [Serve].
type Options struct {
	Folder   string // holds the certificate, the log and the tokens of the server
	AdminKey string // file of the admin key; made if missing. Default: admin.nk in Folder
	// Start starts the NATS server of this fleet: embedded.Start. It is not called if Cluster is set.
	Start  func(ServerOptions) (Server, error)
	Listen string // its address. Default ":4222"
	// URL is the address for devices, such as tls://office.local:4222. Default: an address of this machine.
	URL string
	// Cluster is the URL of a NATS cluster with JetStream that is used instead of the embedded server. Creds is the
	// file with the service's login there.
	Cluster, Creds string
	Replicas       int // number of copies of the log in a cluster. Default 1
	// Callout is the fleet's account in a cluster that asks this service who may connect (auth callout, with the
	// fleet's id as the issuer). Empty if the cluster decides itself.
	Callout string
	Limits  Limits
	// Restored says that the log was put back to an earlier state, or lost, and continues from there. Devices then give
	// back the lost entries. Set it for one start only.
	Restored bool
	// SnapshotEvery is the number of log entries between snapshots. Keep is the number of entries before a snapshot
	// that stay in the log, for devices that were away for a short time. Defaults 4,000.
	SnapshotEvery, Keep uint64
	Log                 *slog.Logger
	// Ready is called once, when devices can connect. May be nil.
	Ready func(Ready)
}

// Ready describes a server when devices can connect.
type Ready struct {
	URL     string
	Fleet   string
	Devices int // number of members
}

// Defaults of [Options]. The service makes snapshots before devices would.
const (
	defaultListen   = ":4222"
	defaultSnapshot = 4000
)

// service signs admissions and keeps the log of a fleet small.
type service struct {
	Options
	admin  nkeys.KeyPair
	names  subjects
	server Server // nil in a cluster
	conn   *Conn
	stream jetstream.Stream
	bucket jetstream.ObjectStore
	tokens *invitations
	known  bool // the folder belonged to the fleet before this start
	url    string
	pin    []byte

	saying sync.Mutex     // one entry of the admin key at a time
	unsaid *unsaid        // an entry that may or may not be stored
	nonces *nonceCache    // of executed commands
	passed rate.Sometimes // limits log lines about ignored entries
	tight  bool           // the disk is nearly full, and the log refuses entries

	mu       sync.Mutex
	ledger   *ledger.Ledger
	spoken   map[uint64][]byte // entries of the admin key, by their counter
	applied  chan struct{}     // closed and replaced when an entry was applied
	purges   []purge
	barred   *barred
	snapshot uint64 // place of the newest snapshot
	places   map[string]Place
}

// Serve runs the server of a fleet until ctx ends, or until it cannot continue. At the first start it makes the folder
// and the admin key, and so the fleet.
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
		Options: o,
		passed:  rate.Sometimes{First: 5, Interval: 10 * time.Second}, spoken: make(map[uint64][]byte),
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
			return errors.New("there is neither a server to start nor a cluster; give the URL of a cluster with --nats")
		}
		s.server, err = o.Start(
			ServerOptions{
				Folder: o.Folder,
				Listen: o.Listen,
				Fleet:  s.names.fleet,
				Limits: o.Limits.defaults(),
				Log:    o.Log,
			},
		)
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
			return errors.New("the cluster refuses this service; check the file of --creds")
		}
		return err
	}
	return s.conn.open()
}

// prepare reads the whole log, and then lets devices in.
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
	// The service must know all members and revocations before the first device connects.
	if err := s.readTo(ctx, last); err != nil {
		return err
	}
	if err := s.checkLost(last); err != nil {
		return err
	}
	if err := s.continueLog(begin, last); err != nil {
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

// restore loads the newest snapshot.
func (s *service) restore(ctx context.Context) (err error) {
	seq, data, err := getSnapshot(ctx, s.conn.js, s.names)
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
			return fmt.Errorf(
				"the snapshot cannot be read, and the log no longer has its entries: %w; put back a copy of %s", err,
				s.Folder)
		}
		s.Log.Warn("the snapshot cannot be read; the log still has all entries", "error", err)
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
	work.Go(func() { s.watchFlow(ctx) })
	work.Go(func() { s.answerCallout(ctx, callout) })
	if s.Ready != nil {
		s.Ready(Ready{URL: s.url, Fleet: s.names.fleet, Devices: len(s.members())})
	}
	select {
	case <-ctx.Done():
	case <-s.ended():
		cancel(
			errors.New("the NATS server has ended or cannot write its files; read its messages and check the disk; " +
				"then start it again: stored entries are not lost"),
		)
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
