// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/fleet/hub"
	"github.com/faceauth/faceauth/fleet/hub/embedded"
	"github.com/faceauth/faceauth/fleet/ledger"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"
)

// childOptions makes this test program a server that can be killed.
const childOptions = "FACEAUTH_HUB_TEST_SERVER"

func TestMain(m *testing.M) {
	if text := os.Getenv(childOptions); text != "" {
		serveChild(text)
		return
	}
	if text := os.Getenv(deviceOptions); text != "" {
		talk(text)
	}
	os.Exit(m.Run())
}

// serveChild serves until it is killed or its standard input ends, so that it never outlives the test.
func serveChild(text string) {
	o := hub.Options{Start: embedded.Start, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	var c childConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	o.Folder, o.Listen, o.SnapshotEvery, o.Keep, o.Limits = c.Folder, c.Listen, c.SnapshotEvery, c.Keep, c.Limits
	o.Restored = c.Restored
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	o.Ready = func(r hub.Ready) {
		b, _ := json.Marshal(r)
		fmt.Println(string(b))
	}
	if err := hub.Serve(ctx, o); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type childConfig struct {
	Folder, Listen      string
	SnapshotEvery, Keep uint64
	Limits              hub.Limits
	Restored            bool
}

// child is a server in a process of its own.
type child struct {
	hub.Ready
	config childConfig
	cmd    *exec.Cmd
	in     io.Closer
	said   *bytes.Buffer
}

func startChild(t testing.TB, config childConfig) *child {
	t.Helper()
	c := &child{config: config, said: &bytes.Buffer{}}
	var out io.Reader
	c.cmd, c.in, out = startProcess(t, childOptions, config, c.said)
	t.Cleanup(c.kill)
	if err := json.NewDecoder(out).Decode(&c.Ready); err != nil {
		c.kill()
		t.Fatalf("the server does not start: %v: %s", err, c.said)
	}
	return c
}

// startProcess starts this test program again, with a configuration in an environment variable that TestMain reads. The
// process ends when its standard input ends.
func startProcess(
	t testing.TB,
	variable string,
	config any,
	stderr io.Writer,
) (cmd *exec.Cmd, in io.Closer, out io.Reader) {
	t.Helper()
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), variable+"="+string(text))
	cmd.Stderr = stderr
	if in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if out, err = cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, in, out
}

// kill sends SIGKILL, and waits.
func (c *child) kill() {
	if c.cmd.ProcessState == nil {
		c.cmd.Process.Kill()
		c.cmd.Wait()
	}
	c.in.Close()
}

// again restarts the server that was killed.
func (c *child) again(t testing.TB) *child {
	t.Helper()
	config := c.config
	config.Listen = strings.TrimPrefix(c.URL, "tls://")
	return startChild(t, config)
}

// served is a server in the process of the test.
type served struct {
	hub.Ready
	folder string
	stop   func() error
}

func serve(t testing.TB, o hub.Options) *served {
	t.Helper()
	if o.Folder == "" {
		o.Folder = filepath.Join(t.TempDir(), "server")
	}
	if o.Listen == "" && o.Cluster == "" {
		o.Listen = "127.0.0.1:0"
	}
	if o.Start == nil {
		o.Start = embedded.Start
	}
	ready, done := make(chan hub.Ready, 1), make(chan error, 1)
	o.Ready = func(r hub.Ready) { ready <- r }
	ctx, cancel := context.WithCancel(context.Background())
	go func() { done <- hub.Serve(ctx, o) }()
	var once sync.Once
	var ended error
	stop := func() error {
		once.Do(func() {
			cancel()
			if ended = <-done; errors.Is(ended, context.Canceled) {
				ended = nil
			}
		})
		return ended
	}
	t.Cleanup(func() { stop() })
	select {
	case r := <-ready:
		return &served{r, o.Folder, stop}
	case err := <-done:
		done <- err
		t.Fatalf("serving: %v", err)
	case <-time.After(60 * time.Second):
		t.Fatal("the server is not ready in a minute")
	}
	return nil
}

func admin(t testing.TB, folder string) *hub.Admin {
	t.Helper()
	a, err := hub.OpenAdmin(within(t, 20*time.Second), folder, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

func invite(t testing.TB, a *hub.Admin, people ...string) hub.Token {
	t.Helper()
	token, err := a.Invite(within(t, 20*time.Second), time.Hour, people)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// joined returns a new member and its connection.
func joined(t testing.TB, a *hub.Admin, name string) (*hub.Member, *hub.Conn) {
	t.Helper()
	m, err := hub.Join(within(t, 20*time.Second), filepath.Join(t.TempDir(), name), invite(t, a),
		hub.Joining{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return m, open(t, m)
}

func open(t testing.TB, m *hub.Member) *hub.Conn {
	t.Helper()
	c, err := m.Connect(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// A device joins with a token, once. Every other attempt is refused with an error that says why.
func TestJoin(t *testing.T) {
	s := serve(t, hub.Options{})
	a := admin(t, s.folder)
	token := invite(t, a)
	folder := filepath.Join(t.TempDir(), "door")
	m, err := hub.Join(within(t, 20*time.Second), folder, token, hub.Joining{Name: "door"})
	if err != nil {
		t.Fatal(err)
	}
	if m.Name != "door" || m.Fleet != s.Fleet || !m.Scope.All || m.Skew.Abs() > time.Minute {
		t.Errorf("member %+v", m)
	}
	again, err := hub.Open(folder)
	if err != nil || again.ID != m.ID || again.URL != m.URL {
		t.Fatalf("opened %+v, %v", again, err)
	}
	c := open(t, again)
	isUp(t, c)
	eventually(t, "being listed", func() bool {
		all, err := a.Devices(within(t, 5*time.Second))
		return err == nil && len(all) == 1 && all[0].ID == m.ID && all[0].Connected
	})
	refused := func(what string, in string, token hub.Token, j hub.Joining, want error, sentence string) {
		t.Helper()
		_, err := hub.Join(within(t, 20*time.Second), in, token, j)
		if !errors.Is(err, want) || !strings.Contains(fmt.Sprint(err), sentence) {
			t.Errorf("%s: %v", what, err)
		}
	}
	fresh := func() string { return filepath.Join(t.TempDir(), "f") }
	refused("used by another", fresh(), token, hub.Joining{Name: "hall"}, hub.ErrDenied, `used already, on `)
	refused("joined already", folder, invite(t, a), hub.Joining{Name: "hall"}, hub.ErrJoined, "there is nothing to do")
	refused("a name twice", fresh(), invite(t, a), hub.Joining{Name: "door"}, hub.ErrDenied, "another device is named")
	refused("a bad name", fresh(), invite(t, a), hub.Joining{Name: "a\nb"}, hub.ErrName, "1 to 64")
	unknown := hub.NewToken(token.URL, token.Fleet, token.Pin, time.Now().Add(time.Hour))
	refused("a token that nobody made", fresh(), unknown, hub.Joining{Name: "x"}, hub.ErrDenied,
		"does not know this token")
	other := serve(t, hub.Options{})
	foreign := invite(t, admin(t, other.folder))
	refused("another fleet's folder", folder, foreign, hub.Joining{Name: "x"}, hub.ErrJoined, "another fleet")
	refused("another server", fresh(), invite(t, a), hub.Joining{Name: "x", URL: other.URL}, hub.ErrPin,
		"another certificate")
	mixed := foreign
	mixed.URL, mixed.Pin = token.URL, token.Pin
	refused("another fleet's token", fresh(), mixed, hub.Joining{Name: "x"}, hub.ErrDenied, "does not know this token")
	nobody := invite(t, a)
	nobody.URL = "tls://127.0.0.1:1"
	refused("nobody there", fresh(), nobody, hub.Joining{Name: "x"}, hub.ErrOffline,
		"check that faceauth fleet serve runs there")
	nobody.URL = "tls://no-such-host.invalid:4222"
	refused("no such host", fresh(), nobody, hub.Joining{Name: "x"}, hub.ErrOffline, "cannot be found")
	// The device has lost the answer: the same token admits it again, and the log has one admission.
	if err := os.Remove(filepath.Join(folder, "hub")); err != nil {
		t.Fatal(err)
	}
	back, err := hub.Join(within(t, 20*time.Second), folder, token, hub.Joining{Name: "door"})
	if err != nil || back.ID != m.ID {
		t.Errorf("joining again: %+v, %v", back, err)
	}
	if last, err := c.Last(within(t, 5*time.Second)); err != nil || last != 1 {
		t.Errorf("the log has %d entries, %v", last, err)
	}
	if _, err := hub.Open(fresh()); !errors.Is(err, fleet.ErrNotJoined) {
		t.Errorf("no folder: %v", err)
	}
	if err := os.WriteFile(filepath.Join(folder, "hub"), []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := hub.Open(folder); !errors.Is(err, fleet.ErrDamaged) {
		t.Errorf("a damaged folder: %v", err)
	}
}

// A token expires by the clock of the server. The clock of the device does not matter.
func TestTokenExpires(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "server")
	s := serve(t, hub.Options{Folder: folder})
	token := invite(t, admin(t, folder))
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	// Change the file, as if the hour had passed.
	hub.AgeInvitations(t, folder, 2*time.Hour)
	serve(t, hub.Options{Folder: folder, Listen: strings.TrimPrefix(s.URL, "tls://")})
	_, err := hub.Join(within(t, 20*time.Second), filepath.Join(t.TempDir(), "d"), token, hub.Joining{Name: "d"})
	if !errors.Is(err, hub.ErrDenied) || !strings.Contains(err.Error(), "expired on") ||
		!strings.Contains(err.Error(), "by the clock of the server") {
		t.Errorf("error %v", err)
	}
	for _, lasts := range []time.Duration{0, -time.Hour, time.Second, 31 * 24 * time.Hour} {
		if _, err := admin(t, folder).Invite(within(t, 5*time.Second), lasts, nil); !errors.Is(err, hub.ErrCommand) {
			t.Errorf("a token for %v: %v", lasts, err)
		}
	}
	if _, err := admin(t, folder).Invite(within(t, 5*time.Second), time.Hour, []string{"alice"}); err == nil ||
		!strings.Contains(err.Error(), "knows no names") {
		t.Errorf("a person by name: %v", err)
	}
}

// If many devices use one token at the same time, exactly one is admitted.
func TestTokenOnce(t *testing.T) {
	s := serve(t, hub.Options{})
	token := invite(t, admin(t, s.folder))
	var work sync.WaitGroup
	var mu sync.Mutex
	in := 0
	for n := range 8 {
		folder := filepath.Join(t.TempDir(), "d")
		work.Go(func() {
			_, err := hub.Join(within(t, 30*time.Second), folder, token, hub.Joining{Name: fmt.Sprint("device ", n)})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				in++
			case !errors.Is(err, hub.ErrDenied) && !errors.Is(err, hub.ErrOffline):
				t.Errorf("device %d: %v", n, err)
			}
		})
	}
	work.Wait()
	if in != 1 {
		t.Errorf("%d devices came in with one token", in)
	}
	all, err := admin(t, s.folder).Devices(within(t, 5*time.Second))
	if err != nil || len(all) != 1 {
		t.Errorf("%d devices, %v", len(all), err)
	}
}

// A client with only a token can ask to join, and nothing else.
func TestBearerMayNot(t *testing.T) {
	s := serve(t, hub.Options{})
	a := admin(t, s.folder)
	_, c := joined(t, a, "door")
	isUp(t, c)
	token := invite(t, a)
	key, err := nkeys.FromRawSeed(nkeys.PrefixByteUser, token.Secret)
	if err != nil {
		t.Fatal(err)
	}
	id, _ := key.PublicKey()
	nc, err := hub.Dial(within(t, 10*time.Second), s.URL, nats.Nkey(id, key.Sign), nats.Secure(hub.Pinned(token.Pin)))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	refused := make(chan error, 10)
	nc.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refused <- err })
	names := hub.NamesOf(s.Fleet)
	for _, subject := range []string{strings.Replace(names.AnyLog, "*", "-", 1), names.Admin, "$JS.API.STREAM.INFO." +
		names.Stream, hub.KeysOf(s.Fleet, ""), hub.PlaceOf(s.Fleet, id)} {
		nc.Publish(subject, nil)
		select {
		case <-refused:
		case <-time.After(5 * time.Second):
			t.Errorf("%s was let through", subject)
		}
	}
	for _, subject := range []string{">", names.AnyLog, names.Join} {
		nc.SubscribeSync(subject)
		select {
		case <-refused:
		case <-time.After(5 * time.Second):
			t.Errorf("listening to %s was let through", subject)
		}
	}
	// Garbage in a request is answered with a refusal.
	sub, err := nc.SubscribeSync(hub.Inbox(id) + ".x")
	if err != nil {
		t.Fatal(err)
	}
	for _, garbage := range [][]byte{nil, []byte("garbage"), bytes.Repeat([]byte{0x9f}, 1000),
		bytes.Repeat([]byte{0xff}, 100000), {0xa1, 1, 0x5b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}} {
		if err := nc.PublishRequest(names.Join, hub.Inbox(id)+".x", garbage); err != nil {
			t.Fatal(err)
		}
		if m, err := sub.NextMsg(5 * time.Second); err != nil || !bytes.Contains(m.Data, []byte("cannot be read")) {
			t.Errorf("garbage of %d bytes: %v", len(garbage), err)
		}
	}
}

// A device that was offline when it was revoked learns it from an entry of the admin key, and ends.
func TestRevokedWhileAway(t *testing.T) {
	s := serve(t, hub.Options{})
	a := admin(t, s.folder)
	folder := filepath.Join(t.TempDir(), "hall")
	m, err := hub.Join(within(t, 20*time.Second), folder, invite(t, a), hub.Joining{Name: "hall"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Revoke(within(t, 20*time.Second), "hall"); err != nil {
		t.Fatal(err)
	}
	d, err := fleet.Open(folder, fleet.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Run(within(t, 30*time.Second), open(t, m)); !errors.Is(err, fleet.ErrRevoked) {
		t.Errorf("it ends with %v", err)
	}
}

// The limits of the log and the snapshots can be lowered and raised.
func TestRoomChanges(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "server")
	for i, disk := range []int64{1 << 30, 64 << 20, 256 << 20} {
		s := serve(t, hub.Options{Folder: folder, Limits: hub.Limits{Disk: disk}})
		_, c := joined(t, admin(t, s.folder), fmt.Sprint("door", i))
		isUp(t, c)
		c.Close()
		if err := s.stop(); err != nil {
			t.Fatal(err)
		}
	}
}

// A revoked device is disconnected at once, stays out after a restart of the server, and cannot join again with its
// key.
func TestRevoke(t *testing.T) {
	s := serve(t, hub.Options{})
	a := admin(t, s.folder)
	_, door := joined(t, a, "door")
	hallFolder := filepath.Join(t.TempDir(), "hall")
	m, err := hub.Join(within(t, 20*time.Second), hallFolder, invite(t, a), hub.Joining{Name: "hall"})
	if err != nil {
		t.Fatal(err)
	}
	hall := open(t, m)
	isUp(t, door)
	isUp(t, hall)
	if _, err := a.Revoke(within(t, 20*time.Second), "kitchen"); !errors.Is(err, hub.ErrCommand) ||
		!strings.Contains(err.Error(), "no device") {
		t.Errorf("an unknown one: %v", err)
	}
	if id, err := a.Revoke(within(t, 20*time.Second), "hall"); err != nil || id != m.ID {
		t.Fatalf("revoked %s, %v", id, err)
	}
	if hall.Err() == nil {
		eventually(t, "being cut off", func() bool { return hall.Err() != nil })
	}
	eventually(t, "being refused", func() bool { return errors.Is(hall.Err(), fleet.ErrRefused) })
	if _, err := a.Revoke(within(t, 20*time.Second), "hall"); err == nil ||
		!strings.Contains(err.Error(), "revoked already") {
		t.Errorf("twice: %v", err)
	}
	token := invite(t, a)
	if err := os.Remove(filepath.Join(hallFolder, "hub")); err != nil {
		t.Fatal(err)
	}
	if _, err := hub.Join(within(t, 20*time.Second), hallFolder, token, hub.Joining{Name: "hall"}); !errors.Is(err,
		hub.ErrDenied) ||
		!strings.Contains(err.Error(), "was revoked") {
		t.Errorf("joining with a revoked key: %v", err)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	s2 := serve(t, hub.Options{Folder: s.folder, Listen: strings.TrimPrefix(s.URL, "tls://")})
	if s2.Devices != 1 || s2.Fleet != s.Fleet {
		t.Errorf("after a restart: %+v", s2.Ready)
	}
	eventually(t, "the member to come back", func() bool { return door.Err() == nil })
	if err := open(t, m).Wait(within(t, 10*time.Second)); !errors.Is(err, fleet.ErrRefused) {
		t.Errorf("the revoked one after a restart: %v", err)
	}
	all, err := admin(t, s.folder).Devices(within(t, 5*time.Second))
	if err != nil || len(all) != 2 || all[0].Name != "door" || all[0].Revoked || !all[1].Revoked {
		t.Errorf("devices %+v, %v", all, err)
	}
}

// Checks of the folder of a server, its admin key and its lock.
func TestServeRefuses(t *testing.T) {
	s := serve(t, hub.Options{})
	try := func(what string, o hub.Options, sentence string) {
		t.Helper()
		o.Start = embedded.Start
		if o.Listen == "" {
			o.Listen = "127.0.0.1:0"
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if err := hub.Serve(ctx, o); err == nil || !strings.Contains(err.Error(), sentence) {
			t.Errorf("%s: %v", what, err)
		}
	}
	try("a second server", hub.Options{Folder: s.folder}, "another server of this fleet uses")
	try("a taken port", hub.Options{Folder: t.TempDir(), Listen: strings.TrimPrefix(s.URL, "tls://")}, "cannot listen")
	try("no port", hub.Options{Folder: t.TempDir(), Listen: "here"}, "must look like :4222")
	try("a URL with a password", hub.Options{Folder: t.TempDir(), URL: "tls://a:b@host:1"},
		"put user and password into a file")
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other.nk")
	k, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	seed, _ := k.Seed()
	if err := os.WriteFile(other, seed, 0o600); err != nil {
		t.Fatal(err)
	}
	try("another fleet's key", hub.Options{Folder: s.folder, AdminKey: other}, "of another fleet")
	if err := os.Chmod(other, 0o644); err != nil {
		t.Fatal(err)
	}
	try("a key that others can read", hub.Options{Folder: s.folder, AdminKey: other}, "chmod 600")
	try("no key", hub.Options{Folder: s.folder, AdminKey: other + "-none"}, "put back your copy")
	if _, err := hub.OpenAdmin(within(t, 5*time.Second), t.TempDir(), ""); !errors.Is(err, hub.ErrNoServer) {
		t.Errorf("no server: %v", err)
	}
	if _, err := hub.OpenAdmin(within(t, 5*time.Second), s.folder, ""); !errors.Is(err, hub.ErrOffline) ||
		!strings.Contains(err.Error(), "does not run") {
		t.Errorf("a server that does not run: %v", err)
	}
}

// signedEntry returns an entry signed by a device, which the fleet accepts.
func signedEntry(t testing.TB, fleetID string, key nkeys.KeyPair, e ledger.Entry) []byte {
	t.Helper()
	if err := e.Sign(fleetID, key); err != nil {
		t.Fatal(err)
	}
	return e.Encode()
}

func deviceSeed(t testing.TB, folder string) nkeys.KeyPair {
	t.Helper()
	k, err := fleet.Identity(folder)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// The entries about a forgotten person leave the log and the snapshot. The log before a snapshot is trimmed, and a
// device that joins later starts from the snapshot.
func TestForgetAndTrim(t *testing.T) {
	s := serve(t, hub.Options{SnapshotEvery: 40, Keep: 10})
	a := admin(t, s.folder)
	folder := filepath.Join(t.TempDir(), "door")
	m, err := hub.Join(within(t, 20*time.Second), folder, invite(t, a), hub.Joining{Name: "door"})
	if err != nil {
		t.Fatal(err)
	}
	c, key := open(t, m), deviceSeed(t, folder)
	isUp(t, c)
	people := []ledger.ID{ledger.NewID(), ledger.NewID()}
	keys := []ledger.Key{ledger.NewKey(), ledger.NewKey()}
	n := uint64(0)
	say := func(e ledger.Entry) {
		t.Helper()
		n++
		e.N, e.Time, e.Device = n, time.Now(), m.ID
		if e.Kind == ledger.Name {
			e.Seal(s.Fleet, keys[e.N%2], ledger.Naming{Name: fmt.Sprint("name ", n)})
		} else if e.Kind == ledger.Forget {
			e.Put(ledger.Forgetting{})
		}
		data := signedEntry(t, s.Fleet, key, e)
		if err := c.Append(within(t, 20*time.Second), e.Person.String(), data); err != nil {
			t.Fatal(err)
		}
	}
	for range 30 {
		say(ledger.Entry{Kind: ledger.Name, Person: people[(n+1)%2]})
	}
	say(ledger.Entry{Kind: ledger.Forget, Person: people[0]})
	r := follow(t, c)
	// The entry that forgets the person stays, and so do the entries about the other person.
	eventually(t, "the purge",
		func() bool { n := stored(t, s); return n[people[0].String()] == 1 && n[people[1].String()] == 15 })
	for range 40 {
		n++ // even numbers belong to the other key
		say(ledger.Entry{Kind: ledger.Name, Person: people[1], N: n})
	}
	eventually(t, "all entries",
		func() bool { last, err := c.Last(within(t, 5*time.Second)); return err == nil && r.place() == last })
	var seq uint64
	var data []byte
	eventually(t, "a snapshot", func() bool {
		var body io.ReadCloser
		var err error
		if seq, body, err = c.Snapshot(within(t, 5*time.Second)); err != nil {
			return false
		}
		defer body.Close()
		data, err = io.ReadAll(body)
		return err == nil && seq > 40
	})
	l, err := ledger.Restore(s.Fleet, bytes.NewReader(data))
	if err != nil || l.Seq() != seq || !l.Forgotten(people[0]) || l.Forgotten(people[1]) {
		t.Fatalf("restored to %d, snapshot of %d, %v", l.Seq(), seq, err)
	}
	if d, known := l.Device(m.ID); !known || d.Name != "door" {
		t.Errorf("the device is %+v", d)
	}
	eventually(t, "the trimming", func() bool {
		err := c.Follow(within(t, 5*time.Second), 0,
			func(uint64, []byte) error { return errors.New("from the beginning") })
		return errors.Is(err, fleet.ErrTrimmed)
	})
	if err := c.PutSnapshot(t.Context(), 1, nil); !errors.Is(err, hub.ErrReadOnly) {
		t.Errorf("a device stores a snapshot: %v", err)
	}
	// The server starts from the snapshot.
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	if s2 := serve(t, hub.Options{Folder: s.folder, Listen: strings.TrimPrefix(s.URL, "tls://")}); s2.Devices < 1 {
		t.Errorf("after a restart: %+v", s2.Ready)
	}
}

// stored returns the number of entries in the log by subject.
func stored(t testing.TB, s *served) map[string]uint64 {
	t.Helper()
	seed, err := os.ReadFile(filepath.Join(s.folder, "admin.nk"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := nkeys.FromSeed(bytes.TrimSpace(seed))
	if err != nil {
		t.Fatal(err)
	}
	a := admin(t, s.folder)
	nc, err := hub.Dial(within(t, 10*time.Second), s.URL, nats.Nkey(s.Fleet, key.Sign),
		nats.Secure(hub.Pinned(invite(t, a).Pin)))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(within(t, 10*time.Second), hub.NamesOf(s.Fleet).Stream)
	if err != nil {
		t.Fatal(err)
	}
	info, err := stream.Info(within(t, 10*time.Second), jetstream.WithSubjectFilter(">"))
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]uint64)
	for subject, n := range info.State.Subjects {
		all[subject[strings.LastIndexByte(subject, '.')+1:]] = n
	}
	return all
}

// A device that appends far too many entries is refused for a while. It may still read, and other devices can append.
func TestTooMuch(t *testing.T) {
	s := serve(t, hub.Options{Limits: hub.Limits{Burst: 200_000}})
	a := admin(t, s.folder)
	_, quiet := joined(t, a, "quiet")
	isUp(t, quiet)
	folder := filepath.Join(t.TempDir(), "loud")
	m, err := hub.Join(within(t, 20*time.Second), folder, invite(t, a), hub.Joining{Name: "loud"})
	if err != nil {
		t.Fatal(err)
	}
	loud, key, id, secret := open(t, m), deviceSeed(t, folder), ledger.NewID(), ledger.NewKey()
	isUp(t, loud)
	stopped := 0
	for n, end := uint64(1), time.Now().Add(20*time.Second); time.Now().Before(end) && stopped == 0; n++ {
		e := ledger.Entry{N: n, Time: time.Now(), Device: m.ID, Kind: ledger.Label, Person: id}
		e.Seal(s.Fleet, secret, ledger.Faces{Space: "test", Faces: []ledger.Face{{Vector: make([]float32, 4000)}}})
		data := signedEntry(t, s.Fleet, key, e)
		if err := loud.Append(within(t, 2*time.Second), id.String(), data); err != nil {
			stopped = int(n)
			t.Log(n, err)
		}
	}
	if stopped < 10 {
		t.Errorf("stopped at entry %d of 16 kB, with 200 kB allowed", stopped)
	}
	eventually(t, "its coming back to read",
		func() bool { _, err := loud.Last(within(t, 5*time.Second)); return err == nil })
	if err := loud.Append(within(t, time.Second), "", []byte("more")); err == nil {
		t.Error("it is listened to")
	}
	if err := quiet.Append(within(t, 5*time.Second), "", []byte("x")); err != nil {
		t.Errorf("the other one: %v", err)
	}
}

// A log half full of garbage is trimmed, and continues to take entries.
func TestCrowded(t *testing.T) {
	s := serve(t, hub.Options{Limits: hub.Limits{Disk: 16 << 20}})
	_, c := joined(t, admin(t, s.folder), "door")
	isUp(t, c)
	for range 120 { // 24 MB, more than the 9.6 MB that fit
		for {
			err := c.Append(within(t, 10*time.Second), "", make([]byte, 200_000))
			if err == nil {
				break
			}
			if !errors.Is(err, hub.ErrFull) {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	seq, body, err := c.Snapshot(within(t, 10*time.Second))
	if err != nil || seq < 20 {
		t.Fatalf("snapshot of %d, %v", seq, err)
	}
	body.Close()
}
