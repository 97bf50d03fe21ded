// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/fleet/hub"
	"github.com/fxamacker/cbor/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// patience is how long a test waits for what must happen. It is long, because the machine may be busy.
const patience = 30 * time.Second

// site is a fleet with its server on this machine.
type site struct {
	t       *testing.T
	key     *fleet.AdminKey
	folder  string
	options hub.Options
	url     string
	creds   string // of devices at a cluster
	lines   *lines
	stop    func() error
	ready   hub.Ready
}

// lines collects the log of a server.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// freeAddress returns an address that is free. The port is none that the system gives to others by itself.
func freeAddress(t *testing.T) string {
	t.Helper()
	for {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(12000)))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return l.Addr().String()
	}
}

func newSite(t *testing.T) *site {
	t.Helper()
	address := freeAddress(t)
	x := newSiteAt(t, "tls://"+address)
	x.options.Listen = address
	return x
}

// newSiteAt returns a fleet whose server has a URL.
func newSiteAt(t *testing.T, url string) *site {
	t.Helper()
	key, err := fleet.NewAdminKey(filepath.Join(t.TempDir(), "admin.nk"))
	if err != nil {
		t.Fatal(err)
	}
	x := &site{t: t, key: key, folder: filepath.Join(t.TempDir(), "server"), url: url, lines: new(lines)}
	x.options = hub.Options{Folder: x.folder, Log: slog.New(slog.NewTextHandler(x.lines, nil))}
	if err := hub.Create(x.folder, key, x.url); err != nil {
		t.Fatal(err)
	}
	return x
}

// start runs the server until stop is called or the test ends.
func (x *site) start() *site {
	x.t.Helper()
	ready, done := make(chan hub.Ready, 1), make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	o := x.options
	o.Ready = func(r hub.Ready) { ready <- r }
	go func() { done <- hub.Serve(ctx, o) }()
	x.stop = sync.OnceValue(func() error { cancel(); return <-done })
	x.t.Cleanup(func() { x.stop() })
	select {
	case x.ready = <-ready:
	case err := <-done:
		done <- err
		x.t.Fatalf("the server does not start: %v\n%s", err, x.lines)
	case <-time.After(patience):
		x.t.Fatalf("the server is not ready\n%s", x.lines)
	}
	return x
}

func (x *site) admin() *hub.Admin {
	x.t.Helper()
	a, err := hub.OpenAdmin(x.t.Context(), x.folder, x.key)
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(a.Close)
	return a
}

func (x *site) invite(lasts time.Duration) fleet.Token {
	x.t.Helper()
	token, err := x.key.Invite(x.url, fleet.Scope{All: true}, time.Now().Add(lasts))
	if err != nil {
		x.t.Fatal(err)
	}
	return token
}

// device is a hostile or honest member that speaks NATS.
type device struct {
	x         *site
	key       nkeys.KeyPair
	id        string
	admission []byte
	nc        *nats.Conn
}

func (x *site) newDevice() *device {
	x.t.Helper()
	key, err := nkeys.CreateUser()
	if err != nil {
		x.t.Fatal(err)
	}
	id, err := key.PublicKey()
	if err != nil {
		x.t.Fatal(err)
	}
	return &device{x: x, key: key, id: id}
}

func (x *site) secure() nats.Option {
	return nats.Secure(&tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13,
		VerifyConnection: func(s tls.ConnectionState) error {
			return fleet.CheckCertificate(x.key.Fleet(), s.PeerCertificates[0])
		}})
}

// dial connects with a key, and with words in the CONNECT message.
func (x *site) dial(key nkeys.KeyPair, shown []byte, more ...nats.Option) (*nats.Conn, error) {
	id, err := key.PublicKey()
	if err != nil {
		return nil, err
	}
	o := []nats.Option{nats.Nkey(id, key.Sign), x.secure(), nats.CustomInboxPrefix(fleet.Inbox(id)),
		nats.Timeout(patience), nats.NoReconnect()}
	if shown != nil {
		o = append(o, nats.Token(base64.RawURLEncoding.EncodeToString(shown)))
	}
	nc, err := nats.Connect(x.url, append(o, more...)...)
	if err == nil {
		x.t.Cleanup(nc.Close)
	}
	return nc, err
}

// tokenKey returns the key in a token, from its text.
func tokenKey(t *testing.T, token fleet.Token) nkeys.KeyPair {
	t.Helper()
	text, err := base64.RawURLEncoding.DecodeString(token.String())
	if err != nil {
		t.Fatal(err)
	}
	var body map[int]any
	if err := cbor.Unmarshal(text[1:len(text)-4], &body); err != nil {
		t.Fatal(err)
	}
	key, err := nkeys.FromRawSeed(nkeys.PrefixByteUser, body[3].([]byte))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// join asks the server to admit a device; the result is the answer.
func (d *device) join(token fleet.Token) (string, error) {
	d.x.t.Helper()
	a, err := token.Admit(d.id, "device "+d.id[:6], time.Now())
	if err != nil {
		d.x.t.Fatal(err)
	}
	d.admission = a
	key := tokenKey(d.x.t, token)
	nc, err := d.x.dial(key, a)
	if err != nil {
		return "", err
	}
	defer nc.Close()
	id, _ := key.PublicKey()
	m, err := nc.Request("F.join."+id, a, patience)
	if err != nil {
		return "", err
	}
	return string(m.Data), nil
}

func (d *device) connect(more ...nats.Option) error {
	nc, err := d.x.dial(d.key, d.admission, more...)
	d.nc = nc
	return err
}

// member returns a connected device that has joined.
func (x *site) member(more ...nats.Option) *device {
	x.t.Helper()
	d := x.newDevice()
	if answer, err := d.join(x.invite(time.Hour)); answer != "" || err != nil {
		x.t.Fatal(answer, err)
	}
	if err := d.connect(more...); err != nil {
		x.t.Fatal(err)
	}
	return d
}

// ask sends a request and returns the answer, or an error as text.
func (d *device) ask(subject string, data string) string {
	m, err := d.nc.Request(subject, []byte(data), time.Second)
	if errors.Is(err, nats.ErrTimeout) {
		return "no answer"
	} else if err != nil {
		return err.Error()
	}
	return fmt.Sprint(m.Header.Get("Description"), string(m.Data))
}

// say stores a value of the device.
func (d *device) say(name, data string) error {
	m, err := d.nc.Request("F.say."+d.id+"."+name, []byte(data), patience)
	if err == nil && bytes.Contains(m.Data, []byte(`"error"`)) {
		err = errors.New(string(m.Data))
	}
	return err
}

// read returns the last value of a name, or "".
func (d *device) read(writer, name string) string {
	ask, err := json.Marshal(map[string]string{"last_by_subj": "F.say." + writer + "." + name})
	if err != nil {
		d.x.t.Fatal(err)
	}
	m, err := d.nc.Request("$JS.API.DIRECT.GET.say_"+writer, ask, patience)
	if err != nil || m.Header.Get("Status") != "" {
		return ""
	}
	return string(m.Data)
}

// until waits for something.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("this does not happen: ", what)
		}
	}
}

func TestJoin(t *testing.T) {
	x := newSite(t).start()
	if x.ready.URL != x.url || x.ready.Fleet != x.key.Fleet() || x.ready.Devices != 0 {
		t.Fatal(x.ready)
	}
	a, b := x.member(), x.member()
	if err := a.say("_x", "hello"); err != nil {
		t.Fatal(err)
	}
	if got := b.read(a.id, "_x"); got != "hello" {
		t.Fatalf("read %q", got)
	}
	sub, err := b.nc.SubscribeSync("F.now.>")
	if err != nil {
		t.Fatal(err)
	}
	b.nc.Flush()
	if err := a.say("_x", "again"); err != nil {
		t.Fatal(err)
	}
	if m, err := sub.NextMsg(patience); err != nil || m.Subject != "F.now."+a.id+"._x" || string(m.Data) != "again" {
		t.Fatal(m, err)
	}
	room, err := b.nc.SubscribeSync("F.room.*")
	if err != nil {
		t.Fatal(err)
	}
	b.nc.Flush()
	if err := a.nc.Publish("F.room."+a.id, []byte("alice is here")); err != nil {
		t.Fatal(err)
	}
	if m, err := room.NextMsg(patience); err != nil || m.Subject != "F.room."+a.id ||
		string(m.Data) != "alice is here" {
		t.Fatal(m, err)
	}
	if at, err := time.Parse(time.RFC3339, a.ask("F.ask."+a.id, "")); err != nil || time.Since(at).Abs() > time.Hour {
		t.Fatal(at, err)
	}
	if err := a.nc.Publish("F.at."+a.id, []byte(`{"in_step":true,"waiting":3,"keys":1}`)); err != nil {
		t.Fatal(err)
	}
	admin := x.admin()
	until(t, "the status is known", func() bool {
		all, err := admin.Devices(t.Context())
		if err != nil || len(all) != 2 {
			t.Fatal(all, err)
		}
		return all[0].ID == a.id && all[0].Status != nil && all[0].Status.Waiting == 3 && all[0].Connected &&
			all[0].Bytes > 0 || all[1].ID == a.id && all[1].Status != nil && all[1].Connected
	})
	for _, what := range []string{"device admitted", "device connected"} {
		if n := strings.Count(x.lines.String(), what); n != 2 {
			t.Errorf("%d lines %q\n%s", n, what, x.lines)
		}
	}
	if err := x.stop(); err != nil {
		t.Fatal(err)
	}
	// the same folder again: what was stored is there
	x.start()
	if x.ready.Devices != 2 {
		t.Fatal(x.ready)
	}
	if err := b.connect(); err != nil {
		t.Fatal(err)
	}
	if got := b.read(a.id, "_x"); got != "again" {
		t.Fatalf("read %q", got)
	}
}
