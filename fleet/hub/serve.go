// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/fleet/ledger"
	"github.com/faceauth/faceauth/internal/backoff"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"
)

// ErrFleet is returned where the folder of a server and its admin key are of different fleets.
var ErrFleet = errors.New("the admin key is of another fleet than the folder of the server")

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
	Limits         Limits
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
	snapshot uint64 // place of the newest snapshot
	places   map[string]Place
}

// Place is how far a device had read, and when it said so.
type Place struct {
	Seq  uint64    `json:"seq"`
	Seen time.Time `json:"seen"`
}

type unsaid struct {
	entry ledger.Entry
	data  []byte
}

type purge struct {
	person ledger.ID
	before uint64
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
		Options: o, flows: make(map[string]*rate.Limiter), paused: make(map[string]time.Time), passed: rate.Sometimes{First: 5, Interval: 10 * time.Second}, spoken: make(map[uint64][]byte), applied: make(chan struct{}), places: make(map[string]Place), nonces: newNonceCache(),
	}
	var err error
	if s.admin, s.names.fleet, err = adminKey(o.AdminKey, o.Folder); err != nil {
		return err
	}
	if s.tokens, err = openInvitations(filepath.Join(o.Folder, "invitations")); err != nil {
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
	reached := errors.New("reached")
	if s.ledger.Seq() < last {
		err := s.conn.Follow(ctx, s.ledger.Seq(), func(seq uint64, data []byte) error {
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
	}
	s.refresh()
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

// follow applies the log until ctx ends.
func (s *service) follow(ctx context.Context, cancel context.CancelCauseFunc) {
	pause := backoff.Pause{First: 100 * time.Millisecond, Longest: 10 * time.Second}
	for {
		at := s.seq()
		err := s.conn.Follow(ctx, at, s.take)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, ledger.ErrFuture), errors.Is(err, ErrRewound), errors.Is(err, fleet.ErrTrimmed):
			cancel(fmt.Errorf("the log of the fleet cannot be followed: %w", err))
			return
		}
		s.Log.Warn("the log is read again", "error", err)
		if s.seq() > at {
			pause.Reset()
		}
		if !pause.Wait(ctx) {
			return
		}
	}
}

func (s *service) seq() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.Seq()
}

// take applies an entry of the log.
func (s *service) take(seq uint64, data []byte) error {
	s.mu.Lock()
	o, err := s.ledger.Apply(seq, data)
	if err != nil {
		s.mu.Unlock()
		return err
	}
	if o.Entry.Device == s.names.fleet && s.spoken[o.Entry.N] == nil && o.Entry.Verify(s.names.fleet) == nil {
		s.spoken[o.Entry.N] = data
	}
	for _, id := range o.Forgotten {
		s.purges = append(s.purges, purge{id, seq})
	}
	close(s.applied)
	s.applied = make(chan struct{})
	s.mu.Unlock()
	if o.Accepted { // what is not may be said by others in the name of a device
		s.flow(o.Entry.Device, len(data))
	}
	if !o.Accepted {
		s.passed.Do(func() { s.Log.Warn("an entry does not count", "reason", o.Reason) })
	}
	if k := o.Entry.Kind; o.Accepted && (k == ledger.Admit || k == ledger.Revoke) {
		s.refresh()
	}
	return nil
}

// flowPause is how long a device that says too much is not listened to.
const flowPause = time.Minute

// flowSeconds is how long it takes until a device that has said all it may may say as much again.
const flowSeconds = 128

// flow has a device not be listened to for a while that says more than a device does.
func (s *service) flow(device string, bytes int) {
	if s.server == nil || device == "" || device == s.names.fleet {
		return
	}
	f := s.flows[device]
	if f == nil {
		burst := s.Limits.defaults().Burst
		f = rate.NewLimiter(rate.Limit(burst/flowSeconds), burst)
		s.flows[device] = f
	}
	now := time.Now()
	if !f.AllowN(now, bytes) && now.After(s.paused[device]) { // a few entries are on their way when it is stopped
		s.paused[device] = now.Add(flowPause)
		s.Log.Warn("a device says too much and is not listened to for a while; revoke it if something is wrong with it", "id", device, "for", flowPause)
		s.server.Pause(device, s.paused[device])
	}
}

// members returns the devices that may take part.
func (s *service) members() []ledger.Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(s.ledger.Devices(), func(m ledger.Member) bool { return m.Revoked })
}

// refresh has the embedded server let in the members, and nobody else.
func (s *service) refresh() {
	if s.server == nil {
		return
	}
	var ids []string
	for _, m := range s.members() {
		ids = append(ids, m.ID)
	}
	s.server.Admit(ids)
	s.server.Invite(s.tokens.bearers())
}

// sayTime is how long an entry of the admin key may take.
const sayTime = 20 * time.Second

// say puts an entry of the admin key into the log and waits until it has been applied.
func (s *service) say(ctx context.Context, kind ledger.Kind, content any) ([]byte, error) {
	s.saying.Lock()
	defer s.saying.Unlock()
	ctx, cancel := context.WithTimeout(ctx, sayTime)
	defer cancel()
	if s.unsaid != nil { // its number is taken, unless it never came
		if err := s.store(ctx, s.unsaid); err != nil {
			return nil, err
		}
		s.unsaid = nil
	}
	s.mu.Lock()
	n := s.ledger.Last(s.names.fleet) + 1
	s.mu.Unlock()
	e := ledger.Entry{N: n, Time: time.Now(), Kind: kind}
	e.Put(content)
	if err := e.Sign(s.names.fleet, s.admin); err != nil {
		return nil, err
	}
	u := &unsaid{e, e.Encode()}
	if err := s.store(ctx, u); err != nil {
		s.unsaid = u
		return nil, err
	}
	return u.data, nil
}

// store appends an entry until it is stored, and waits for it in the log.
func (s *service) store(ctx context.Context, u *unsaid) error {
	pause := backoff.Pause{First: 50 * time.Millisecond, Longest: 2 * time.Second}
	for {
		err := s.conn.Append(ctx, "", u.entry.MessageID(), u.data)
		if err == nil {
			break
		}
		if errors.Is(err, ErrFull) || errors.Is(err, ErrTooLarge) || !pause.Wait(ctx) {
			return fmt.Errorf("the entry could not be stored: %w", err)
		}
	}
	for {
		s.mu.Lock()
		found, applied := s.spoken[u.entry.N], s.applied
		s.mu.Unlock()
		if found != nil && bytes.Equal(found, u.data) {
			return nil
		}
		if found != nil {
			return errors.New("another service speaks for this fleet at the same time; run faceauth fleet serve once only")
		}
		select {
		case <-applied:
		case <-ctx.Done():
			return fmt.Errorf("%w: the entry was stored, and is not in the log yet; try again", ErrOffline)
		}
	}
}

// keepEvery is how often the service looks whether there is something to purge or trim.
const keepEvery = time.Second

// keep purges what was said of people who are forgotten, makes snapshots, and trims the log.
func (s *service) keep(ctx context.Context) {
	for tick := 0; backoff.Wait(ctx, keepEvery); tick++ {
		if err := s.room(ctx); err != nil && ctx.Err() == nil {
			s.Log.Warn("the room on the disk is not looked after; it is tried again", "error", err)
		}
		if err := s.tidy(ctx); err != nil && ctx.Err() == nil {
			s.Log.Warn("the log is not tidied; it is tried again", "error", err)
		}
		if tick%60 == 59 {
			s.writePlaces()
			if s.server != nil {
				s.server.Invite(s.tokens.bearers())
			}
		}
	}
}

// reserve is how much room is left on the disk of the server, so that what is stored can be kept, purged and trimmed. On a
// small disk it is an eighth.
const reserve = 64 << 20

// room has the log take nothing while the disk is nearly full: a NATS server that cannot write stops altogether.
func (s *service) room(ctx context.Context) error {
	if s.server == nil {
		return nil // the cluster's disks are its administrator's
	}
	var disk unix.Statfs_t
	if err := unix.Statfs(s.Folder, &disk); err != nil {
		return err
	}
	free, least := disk.Bavail*uint64(disk.Bsize), min(reserve, disk.Blocks*uint64(disk.Bsize)/8)
	tight := free < least || s.tight && free < least*3/2
	if tight == s.tight {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	config := s.stream.CachedInfo().Config
	config.MaxBytes = logBytes(s.Limits.defaults())
	if tight {
		config.MaxBytes = 1
	}
	if _, err := s.conn.js.UpdateStream(ctx, config); err != nil {
		return storage(err)
	}
	if s.tight = tight; tight {
		s.Log.Error("the disk is nearly full: the log takes no entry until there is room", "folder", s.Folder, "free_mb", free>>20)
	} else {
		s.Log.Info("there is room again: the log takes entries", "free_mb", free>>20)
	}
	return nil
}

// tidyTime is how long a purge or a snapshot may take.
const tidyTime = 5 * time.Minute

func (s *service) tidy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, tidyTime)
	defer cancel()
	info, err := s.stream.Info(ctx)
	if err != nil {
		return storage(err)
	}
	s.mu.Lock()
	purges := slices.Clone(s.purges)
	seq := s.ledger.Seq()
	s.mu.Unlock()
	// A log that is half full is trimmed to its end: garbage and long lessons leave it before it takes nothing more.
	crowded := int64(info.State.Bytes) > logBytes(s.Limits.defaults())/2 && seq > s.snapshot
	due, keep := seq >= s.snapshot+s.SnapshotEvery || crowded, s.Keep
	if crowded {
		keep = 0
	}
	for _, p := range purges {
		// The entry that forgets stays: it is the last one before the place that is given.
		err := s.stream.Purge(ctx, jetstream.WithPurgeSubject(s.names.log(p.person.String())), jetstream.WithPurgeSequence(p.before))
		if err != nil {
			return fmt.Errorf("purging what was said of a person who is forgotten: %w", storage(err))
		}
		s.mu.Lock()
		s.purges = s.purges[1:]
		s.mu.Unlock()
	}
	// A snapshot from before a forgetting has the person in it, sealed.
	if !due && (len(purges) == 0 || s.snapshot == 0) || seq == 0 {
		return nil
	}
	var b bytes.Buffer
	s.mu.Lock()
	seq = s.ledger.Seq()
	err = s.ledger.Snapshot(&b, s.admin)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	if err := putSnapshot(ctx, s.bucket, s.admin, s.names.fleet, seq, b.Bytes()); err != nil {
		return err
	}
	s.snapshot = seq
	s.Log.Debug("snapshot", "seq", seq, "bytes", b.Len())
	if seq <= keep {
		return nil
	}
	if err := s.stream.Purge(ctx, jetstream.WithPurgeSequence(seq-keep+1)); err != nil {
		return fmt.Errorf("trimming the log: %w", storage(err))
	}
	return nil
}

// adminKey returns the key of a fleet, which is made with the fleet, and the fleet's id.
func adminKey(path, folder string) (nkeys.KeyPair, string, error) {
	id := filepath.Join(folder, "fleet")
	was, err := safefile.ReadBytes(id)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, "", err
	}
	known := string(bytes.TrimSpace(was))
	key, public, err := readAdminKey(path)
	if errors.Is(err, fs.ErrNotExist) && known == "" {
		if key, err = nkeys.CreateAccount(); err != nil {
			return nil, "", err
		}
		seed, err := key.Seed()
		if err != nil {
			return nil, "", err
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, "", err
		}
		if err := safefile.Write(path, append(seed, '\n')); err != nil {
			return nil, "", fmt.Errorf("the admin key: %w", err)
		}
		key, public, err = readAdminKey(path)
		if err != nil {
			return nil, "", err
		}
	} else if errors.Is(err, fs.ErrNotExist) {
		return nil, "", fmt.Errorf("the admin key %s is missing; put back your copy of it: without it no device can join this fleet or be revoked", path)
	} else if err != nil {
		return nil, "", err
	}
	switch {
	case known == "":
		if err := safefile.Write(id, []byte(public+"\n")); err != nil {
			return nil, "", err
		}
	case known != public:
		return nil, "", fmt.Errorf("%w: %s is the key of %s, and %s holds %s; give the right one by --admin-key", ErrFleet, path, public, folder, known)
	}
	return key, public, nil
}

func readAdminKey(path string) (nkeys.KeyPair, string, error) {
	f, err := safefile.Open(path)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Mode().Perm()&0o077 != 0 {
		return nil, "", fmt.Errorf("others can read the admin key %s; run: chmod 600 %s", path, path)
	}
	b := make([]byte, 200)
	n, _ := f.Read(b) // what is cut off is no seed
	key, err := nkeys.FromSeed(bytes.TrimSpace(b[:n]))
	if err != nil {
		return nil, "", fmt.Errorf("%s holds no admin key of a fleet; put back your copy of it", path)
	}
	public, err := key.PublicKey()
	if err != nil || !nkeys.IsValidPublicAccountKey(public) {
		return nil, "", fmt.Errorf("%s holds another key than the admin key of a fleet; put back your copy of it", path)
	}
	return key, public, nil
}

// serverNote is how the commands of an administrator find the server that runs.
type serverNote struct {
	URL   string `json:"url"`
	Fleet string `json:"fleet"`
	Pin   []byte `json:"pin,omitempty"`
	Creds string `json:"creds,omitempty"`
	Key   string `json:"key"`
}

const noteFile = "server.json"

func (s *service) note(local string) error {
	creds, key := s.Creds, s.AdminKey
	for _, p := range []*string{&creds, &key} {
		if *p != "" {
			whole, err := filepath.Abs(*p)
			if err != nil {
				return err
			}
			*p = whole
		}
	}
	b, err := json.Marshal(serverNote{URL: local, Fleet: s.names.fleet, Pin: s.pin, Creds: creds, Key: key})
	if err != nil {
		return err
	}
	return safefile.Write(filepath.Join(s.Folder, noteFile), append(b, '\n'))
}

var placesKind = safefile.Kind{Magic: "faceauth places", Version: 1}

// readPlaces reads how far devices were. It is data for people: without it, or where it is damaged, they say so anew.
func (s *service) readPlaces() {
	b, err := safefile.ReadSealed(filepath.Join(s.Folder, "places"), placesKind)
	if err == nil {
		err = json.Unmarshal(b, &s.places)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.Log.Warn("when devices were seen last is not known", "error", err)
	}
	if s.places == nil {
		s.places = make(map[string]Place)
	}
}

func (s *service) writePlaces() {
	s.mu.Lock()
	b, err := json.Marshal(s.places)
	s.mu.Unlock()
	if err == nil {
		err = safefile.WriteSealed(filepath.Join(s.Folder, "places"), placesKind, b)
	}
	if err != nil {
		s.Log.Warn("when devices were seen last is not kept", "error", err)
	}
}

// localAddress returns how this machine reaches a server that listens at an address.
func localAddress(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if ip.To4() == nil {
			host = "::1"
		}
	}
	return net.JoinHostPort(host, port)
}

// outerAddress returns how other machines may reach it: the first address of this machine that is neither local nor of
// the link alone.
func outerAddress(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsUnspecified() {
		return address
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return localAddress(address)
	}
	for _, four := range []bool{true, false} {
		for _, a := range all {
			n, ok := a.(*net.IPNet)
			if ok && n.IP.IsGlobalUnicast() && !n.IP.IsLoopback() && (n.IP.To4() != nil) == four {
				return net.JoinHostPort(n.IP.String(), port)
			}
		}
	}
	return localAddress(address)
}
