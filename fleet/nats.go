// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// place is where a device reaches its fleet. The file "server" in its folder holds it as JSON.
type place struct {
	URL   string `json:"url"`
	Creds string `json:"creds,omitempty"` // file with the login for a cluster
}

const serverFile = "server"

// Joining says how a device joins.
type Joining struct {
	Name  string // of the device, for people
	URL   string // of the server, instead of that in the token
	Creds string // file with the login for a cluster; empty: the key of the device
}

// admit returns the record that admits the device of a folder, and makes its key if there is none.
func admit(folder string, t Token, name string) ([]byte, error) {
	key, err := Identity(folder)
	if err != nil {
		return nil, err
	}
	id, err := key.PublicKey()
	if err != nil {
		return nil, err
	}
	return t.Admit(id, name, time.Now())
}

// Join makes the device of a folder a member of a fleet. It makes the folder and the key of the device. If joining has
// failed half way, it may be repeated. The error wraps [ErrToken], [ErrName], [ErrOther], [ErrOffline] or [ErrServer],
// or is a sentence of the server.
func Join(ctx context.Context, folder string, t Token, j Joining) (Member, error) {
	if had, err := Joined(folder); err == nil && had != t.Fleet {
		return Member{}, fmt.Errorf("%w: %s; use another folder, or move %s away", ErrOther, had, folder)
	}
	p := place{cmp.Or(j.URL, t.URL), j.Creds}
	if err := errors.Join(CheckURL(p.URL), CheckName(j.Name)); err != nil {
		return Member{}, err
	}
	admission, err := admit(folder, t, j.Name)
	if err != nil {
		return Member{}, err
	}
	key, public := t.key()
	nc, err := connect(ctx, t.Fleet, p, key, admission)
	if err != nil {
		return Member{}, err
	}
	defer nc.Close()
	if err := request(ctx, nc, JoinPrefix+public, admission); err != nil {
		return Member{}, err
	}
	if err := errors.Join(join(folder, t.Fleet, admission), p.write(folder)); err != nil {
		return Member{}, err
	}
	members := NewMembers(t.Fleet)
	if _, _, err := members.Add(admission); err != nil {
		return Member{}, err
	}
	device, _, _, err := CheckAdmission(t.Fleet, admission)
	m, _ := members.Device(device)
	return m, err
}

func (p place) write(folder string) error {
	data, err := json.Marshal(p)
	if err == nil {
		err = safefile.Write(filepath.Join(folder, serverFile), data)
	}
	return err
}

// Move tells the device of a folder where its server is now.
func Move(folder, url string) error {
	p, err := readPlace(folder)
	if err != nil {
		return err
	}
	if err := CheckURL(url); err != nil {
		return err
	}
	p.URL = url
	return p.write(folder)
}

func readPlace(folder string) (p place, err error) {
	data, err := readSmall(filepath.Join(folder, serverFile))
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	if err == nil {
		err = CheckURL(p.URL)
	}
	if err != nil {
		return p, fmt.Errorf("%w: where the server is: %w; join the fleet again", ErrDamaged, err)
	}
	return p, nil
}

// Dial connects to the server, at the address that the admin key has signed last, or else at the one by which the
// device joined. Use it in [Device.Run].
func (d *Device) Dial(ctx context.Context) (Server, error) {
	p, err := readPlace(d.folder)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	moved, admission := d.members.URL(), d.members.admission(d.id)
	d.mu.Unlock()
	var failed error
	for _, url := range slices.Compact([]string{cmp.Or(moved, p.URL), p.URL}) {
		nc, err := connect(ctx, d.fleet, place{url, p.Creds}, d.key, admission)
		if err == nil {
			return newNATS(nc, d.id)
		}
		failed = cmp.Or(failed, err)
	}
	return nil, failed
}

// connectTime is the time limit of one try to connect.
const connectTime = 10 * time.Second

// connect connects once. Shown is the admission that the server may want to see.
func connect(ctx context.Context, fleet string, p place, key nkeys.KeyPair, shown []byte) (*nats.Conn, error) {
	id, err := key.PublicKey()
	if err != nil {
		return nil, err
	}
	login := nats.Nkey(id, signNonce(key))
	options := []nats.Option{nats.Name("faceauth " + id), nats.Timeout(connectTime), nats.NoReconnect(),
		nats.CustomInboxPrefix(Inbox(id)), nats.PingInterval(20 * time.Second), nats.MaxPingsOutstanding(2),
		nats.IgnoreDiscoveredServers(), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
		nats.NoCallbacksAfterClientClose()}
	if p.Creds == "" {
		options = append(options, nats.Token(base64.RawURLEncoding.EncodeToString(shown)))
		if strings.Contains(p.URL, "tls://") {
			options = append(options, nats.Secure(ServerTLS(fleet)))
		}
	} else if login, err = Creds(p.Creds); err != nil {
		return nil, err
	}
	options = append(options, login)
	type result struct {
		c   *nats.Conn
		err error
	}
	made := make(chan result, 1)
	go func() {
		c, err := nats.Connect(p.URL, options...)
		made <- result{c, err}
	}()
	select {
	case r := <-made:
		return r.c, plain(r.err)
	case <-ctx.Done():
		go func() { // the try ends within connectTime
			if r := <-made; r.c != nil {
				r.c.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// request sends a request whose answer is empty or a sentence about what is wrong.
func request(ctx context.Context, nc *nats.Conn, subject string, data []byte) error {
	m, err := nc.RequestWithContext(ctx, subject, data)
	if err != nil {
		return plain(err)
	}
	if len(m.Data) > 0 {
		return fmt.Errorf("%w: %s", ErrRefused, strings.ToValidUTF8(string(m.Data[:min(len(m.Data), 500)]), "?"))
	}
	return nil
}

// plain turns an error of NATS into a sentence with advice.
func plain(err error) error {
	var network *net.OpError
	var dns *net.DNSError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrServer), strings.Contains(err.Error(), ErrServer.Error()):
		return ErrServer
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthRevoked):
		return ErrRefused
	case errors.As(err, &dns):
		return fmt.Errorf("%w: the name %s cannot be found; check the network and the name", ErrOffline, dns.Name)
	case errors.As(err, &network) && network.Op == "dial":
		return fmt.Errorf("%w: %v; check that faceauth fleet serve runs there, and that no firewall blocks its port",
			ErrOffline, network)
	case errors.Is(err, nats.ErrNoServers), errors.Is(err, nats.ErrTimeout), errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf(
			"%w: it does not answer; check that faceauth fleet serve runs there, and that no firewall blocks its port",
			ErrOffline)
	case errors.Is(err, nats.ErrSecureConnWanted), errors.Is(err, nats.ErrSecureConnRequired):
		return fmt.Errorf("%w: only one side uses TLS; check whether the URL begins with tls://", ErrOffline)
	case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrDisconnected),
		errors.Is(err, nats.ErrStaleConnection), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, io.EOF),
		errors.Is(err, nats.ErrNoResponders):
		return ErrOffline
	}
	return err
}

// Creds returns the login for a cluster from a file: user credentials (.creds), the seed of an nkey, or user and
// password with a colon between.
func Creds(path string) (nats.Option, error) {
	b, err := safefile.ReadSecret(path)
	if err != nil {
		return nil, err
	}
	text := strings.TrimSpace(string(b))
	user, password, both := strings.Cut(text, ":")
	switch {
	case strings.Contains(text, "BEGIN NATS USER JWT"):
		return nats.UserCredentials(path), nil
	case strings.HasPrefix(text, "SU") && !strings.ContainsAny(text, " \n:"):
		return nats.NkeyOptionFromSeed(path)
	case both && user != "" && password != "" && !strings.ContainsAny(text, "\n"):
		return nats.UserInfo(user, password), nil
	}
	return nil, fmt.Errorf("%s holds neither NATS user credentials, nor the seed of an nkey, nor USER:PASSWORD", path)
}

// natsServer is a [Server] over NATS.
type natsServer struct {
	nc   *nats.Conn
	id   string
	done chan struct{}
}

func newNATS(nc *nats.Conn, id string) (Server, error) {
	s := &natsServer{nc: nc, id: id, done: make(chan struct{})}
	nc.SetClosedHandler(func(*nats.Conn) { close(s.done) })
	if nc.IsClosed() {
		return nil, ErrOffline
	}
	return s, nil
}

// A batch is at most this large, so that a slow device can follow.
const (
	BatchCount = 500
	BatchBytes = 1 << 20
)

// Stored is a value as a stream has it.
type Stored struct {
	Writer, Name string
	Data         []byte
	Place        uint64    // in the stream
	At           time.Time // zero for unknown
}

// ReadStream calls take with the last values of a writer from a place on, in the order of their places: in batches,
// without a consumer. A server before 2.11 sends one value for each request. A stream that is not there has no values.
// An error of take ends it.
func ReadStream(ctx context.Context, nc *nats.Conn, writer string, from uint64, take func(Stored) error) error {
	in := nc.NewInbox()
	sub, err := nc.SubscribeSync(in)
	if err != nil {
		return err
	}
	defer sub.Unsubscribe()
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return err
	}
	for next, more := max(from, 1), true; more; {
		q, err := json.Marshal(map[string]any{"seq": next, "batch": BatchCount, "max_bytes": BatchBytes,
			"next_by_subj": SayPrefix + writer + ".*"})
		if err == nil {
			err = nc.PublishRequest(DirectGet+StreamOf(writer), in, q)
		}
		if err != nil {
			return err
		}
		for end := false; !end; {
			m, err := sub.NextMsgWithContext(ctx)
			if errors.Is(err, nats.ErrNoResponders) {
				return nil
			} else if err != nil {
				return err
			}
			h := ServerHeaders(nc, m.Header)
			pending := h.Get("Nats-Num-Pending")
			switch status := h.Get("Status"); status {
			case "":
				x, err := stored(h, m.Data)
				if err == nil {
					err = take(x)
				}
				if err != nil {
					return err
				}
				next, end = x.Place+1, pending == "" // an old server
			case "204":
				more, end = pending != "0", true
			case "404", "503": // nothing more, or no such stream
				return nil
			default:
				return fmt.Errorf("the server answers %s %.100s", status, h.Get("Description"))
			}
		}
	}
	return nil
}

// ServerHeaders returns the headers of an answer that the server has added. Before them are those of the value, which
// may be lies. A value has no status; one whose headers cannot be read has that of a value that is not there.
func ServerHeaders(nc *nats.Conn, h nats.Header) nats.Header {
	own := make(nats.Header)
	for _, key := range []string{"Nats-Stream", "Nats-Subject", "Nats-Sequence", "Nats-Time-Stamp",
		"Nats-Num-Pending"} {
		if all := h[key]; len(all) > 0 {
			own.Set(key, all[len(all)-1])
		}
	}
	if own.Get("Nats-Stream") == "" {
		own.Set("Status", cmp.Or(h.Get("Status"), "404"))
		own.Set("Description", h.Get("Description"))
	}
	if v := nc.ConnectedServerVersion(); strings.HasPrefix(v, "2.9.") || strings.HasPrefix(v, "2.10.") {
		own.Del("Nats-Num-Pending") // these versions do not add it
	}
	return own
}

func stored(h nats.Header, data []byte) (x Stored, err error) {
	part := strings.Split(h.Get("Nats-Subject"), ".")
	x.Place, err = strconv.ParseUint(h.Get("Nats-Sequence"), 10, 64)
	if err != nil || len(part) != 4 {
		return x, errors.New("the server answers with something else than a value")
	}
	x.Writer, x.Name, x.Data = part[2], part[3], data
	x.At, _ = time.Parse(time.RFC3339Nano, h.Get("Nats-Time-Stamp"))
	return x, nil
}

// Pull implements [Server].
func (s *natsServer) Pull(ctx context.Context, device string, from uint64,
	take func(string, uint64, []byte)) error {
	return plain(ReadStream(ctx, s.nc, device, from, func(x Stored) error {
		take(x.Name, x.Place, x.Data)
		return nil
	}))
}

// Put implements [Server].
func (s *natsServer) Put(ctx context.Context, name string, data []byte) error {
	m, err := s.nc.RequestWithContext(ctx, SayPrefix+s.id+"."+name, data)
	if err != nil {
		return plain(err)
	}
	var answer struct {
		Error *struct {
			Code int    `json:"err_code"`
			Text string `json:"description"`
		} `json:"error"`
	}
	if err := json.Unmarshal(m.Data, &answer); err != nil {
		return fmt.Errorf("the server answers %.100q", m.Data)
	}
	if e := answer.Error; e != nil && (e.Code == 10077 || strings.Contains(e.Text, "maximum")) {
		return ErrFull
	} else if e != nil {
		return fmt.Errorf("the server does not store what this device says: %.200s", e.Text)
	}
	return nil
}

// Give implements [Server].
func (s *natsServer) Give(ctx context.Context, record []byte) error {
	return request(ctx, s.nc, GivePrefix+s.id, record)
}

// Live implements [Server].
func (s *natsServer) Live(ctx context.Context, ready func(), take func(device, name string, data []byte)) error {
	return s.listen(ctx, NowPrefix+">", ready, func(subject string, data []byte) {
		device, name, ok := strings.Cut(strings.TrimPrefix(subject, NowPrefix), ".")
		if ok {
			take(device, name, bytes.Clone(data))
		}
	})
}

// listen calls take with messages until ctx or the connection ends. If this device is too slow, it ends, too: then all
// is read again.
func (s *natsServer) listen(ctx context.Context, subject string, ready func(), take func(string, []byte)) error {
	sub, err := s.nc.SubscribeSync(subject)
	if err != nil {
		return plain(err)
	}
	defer sub.Unsubscribe()
	if err := s.nc.FlushTimeout(connectTime); err != nil {
		return plain(err)
	}
	ready()
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if ctx.Err() != nil {
			return nil
		} else if err != nil {
			return plain(err)
		}
		take(m.Subject, m.Data)
	}
}

// Tell implements [Server].
func (s *natsServer) Tell(_ context.Context, st Status) error {
	data, err := json.Marshal(st)
	if err != nil {
		return err
	}
	return plain(s.nc.Publish(AtPrefix+s.id, data))
}

// Broadcast implements [Server].
func (s *natsServer) Broadcast(_ context.Context, data []byte) error {
	return plain(s.nc.Publish(RoomPrefix+s.id, data))
}

// Listen implements [Server].
func (s *natsServer) Listen(ctx context.Context, take func(device string, data []byte)) error {
	return s.listen(ctx, RoomPrefix+"*", func() {}, func(subject string, data []byte) {
		if device := strings.TrimPrefix(subject, RoomPrefix); device != s.id {
			take(device, data)
		}
	})
}

// Clock implements [Server].
func (s *natsServer) Clock(ctx context.Context) (time.Duration, error) {
	m, err := s.nc.RequestWithContext(ctx, AskPrefix+s.id, nil)
	if err != nil {
		return 0, plain(err)
	}
	at, err := time.Parse(time.RFC3339Nano, string(m.Data))
	return time.Since(at), err
}

// Done implements [Server].
func (s *natsServer) Done() <-chan struct{} { return s.done }

// Close implements [Server].
func (s *natsServer) Close() error {
	s.nc.Close()
	return nil
}
