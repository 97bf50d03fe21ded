// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/faceauth/faceauth/fleet/ledger"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/fxamacker/cbor/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// Errors of [OpenAdmin] and of the methods of [Admin].
var (
	ErrNoServer = errors.New("there is no server of a fleet")
	ErrCommand  = errors.New("the server of the fleet refuses the command")
)

// Device is a device of a fleet, as its server knows it.
type Device struct {
	ledger.Member
	Connected bool      `json:"connected"`
	Seen      time.Time `json:"seen,omitzero"` // the last time when it was connected
	// Behind is the greatest number of entries that it had not read at its last report. InStep is true if the device is
	// connected and has read all entries.
	Behind uint64 `json:"behind"`
	InStep bool   `json:"in_step"`
}

// Ops of a command.
const (
	opInvite  = "invite"
	opDevices = "devices"
	opRevoke  = "revoke"
	opAllow   = "allow"
)

// command is a command of an administrator. The admin key signs it, because others may publish in a cluster.
type command struct {
	Op      string   `cbor:"1,keyasint"`
	Name    string   `cbor:"2,keyasint,omitempty"`
	People  []string `cbor:"3,keyasint,omitempty"`
	Lasts   int64    `cbor:"4,keyasint,omitempty"` // seconds
	Offset  int      `cbor:"5,keyasint,omitempty"`
	Time    int64    `cbor:"6,keyasint"`
	Nonce   []byte   `cbor:"7,keyasint"`
	Version int      `cbor:"8,keyasint"`
}

type signedCommand struct {
	Command []byte `cbor:"1,keyasint"`
	Sig     []byte `cbor:"2,keyasint"`
}

type commandAnswer struct {
	Refused string `cbor:"1,keyasint,omitempty"`
	Token   string `cbor:"2,keyasint,omitempty"`
	Devices []byte `cbor:"3,keyasint,omitempty"` // JSON
	Total   int    `cbor:"4,keyasint,omitempty"`
	Expires int64  `cbor:"5,keyasint,omitempty"`
	ID      string `cbor:"6,keyasint,omitempty"`
}

const commandVersion = 1

func commandText(fleetID string, body []byte) []byte {
	return append([]byte("faceauth fleet command 1\n"+fleetID+"\n"), body...)
}

// commandAge is the greatest difference between the clocks of a command and the server. Nonces are remembered as long.
const commandAge = 5 * time.Minute

// nonceCache holds the nonces of the last commands, so that no command is executed twice.
type nonceCache struct {
	mu   sync.Mutex
	seen map[string]time.Time
}

func newNonceCache() *nonceCache { return &nonceCache{seen: make(map[string]time.Time)} }

// first reports whether a nonce is new.
func (c *nonceCache) first(nonce []byte, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n, t := range c.seen {
		if now.Sub(t) > 2*commandAge {
			delete(c.seen, n)
		}
	}
	if _, again := c.seen[string(nonce)]; again {
		return false
	}
	c.seen[string(nonce)] = now
	return true
}

// Bounds of tokens.
const (
	shortestToken = time.Minute
	longestLife   = 30 * 24 * time.Hour
)

// command executes a command of an administrator.
func (s *service) command(ctx context.Context, data []byte) (answer commandAnswer) {
	refuse := func(format string, a ...any) commandAnswer { return commandAnswer{Refused: fmt.Sprintf(format, a...)} }
	var signed signedCommand
	var c command
	if strict.Unmarshal(data, &signed) != nil ||
		!signedBy(s.names.fleet, commandText(s.names.fleet, signed.Command), signed.Sig) {
		return refuse("the command is not signed by the admin key of this fleet")
	}
	now := time.Now()
	if strict.Unmarshal(signed.Command, &c) != nil || c.Version != commandVersion || len(c.Nonce) != 16 {
		return refuse("the command cannot be read; install the same version of faceauth on the device and the server")
	}
	if age := now.Sub(time.UnixMilli(c.Time)); age > commandAge || age < -commandAge {
		return refuse(
			"the time of the command is wrong: the clocks of the server and of this machine are %v apart; set them",
			age.Abs().Round(time.Second))
	}
	if !s.nonces.first(c.Nonce, now) {
		return refuse("the command was executed already")
	}
	switch c.Op {
	case opInvite:
		t, err := s.invite(c, now)
		if err != nil {
			return refuse("%v", err)
		}
		return commandAnswer{Token: t.String(), Expires: t.Expires.Unix()}
	case opDevices:
		all := s.devices()
		part := all[min(max(c.Offset, 0), len(all)):]
		for n := min(len(part), 1000); ; n /= 2 {
			b, err := json.Marshal(part[:n])
			if err != nil {
				return refuse("%v", err)
			}
			if len(b) < s.Limits.defaults().Message/2 || n <= 1 {
				return commandAnswer{Devices: b, Total: len(all)}
			}
		}
	case opRevoke:
		d, err := s.revoke(ctx, c.Name)
		if err != nil {
			return refuse("%v", err)
		}
		return commandAnswer{ID: d.ID}
	case opAllow:
		d, err := s.member(c.Name)
		if err == nil {
			_, err = s.say(ctx, ledger.Allow, ledger.Allowance{Device: d.ID})
		}
		if err != nil {
			return refuse("%v", err)
		}
		return commandAnswer{ID: d.ID}
	}
	return refuse("the server does not know the command %q; update it", c.Op)
}

// invite makes a token.
func (s *service) invite(c command, now time.Time) (Token, error) {
	lasts := time.Duration(c.Lasts) * time.Second
	if lasts < shortestToken || lasts > longestLife {
		return Token{}, fmt.Errorf("a token must last from %v to %d days, got %v", shortestToken,
			longestLife/(24*time.Hour), lasts)
	}
	scope := ledger.Scope{All: len(c.People) == 0}
	for _, p := range c.People {
		id, err := ledger.ParseID(p)
		if err != nil {
			return Token{}, fmt.Errorf("%w; the server knows no names: give the number of the person", err)
		}
		s.mu.Lock()
		gone := s.ledger.Forgotten(id)
		s.mu.Unlock()
		if gone {
			return Token{}, fmt.Errorf("%s is forgotten", p)
		}
		scope.People = append(scope.People, id)
	}
	t := NewToken(s.url, s.names.fleet, s.pin, now.Add(lasts))
	key, err := t.key()
	if err != nil {
		return t, err
	}
	public, err := key.PublicKey()
	if err != nil {
		return t, err
	}
	if err := s.tokens.add(invitation{Key: public, Made: now, Expires: t.Expires, Scope: scope}); err != nil {
		return t, err
	}
	if s.server != nil {
		s.server.Invite(s.tokens.bearers())
	}
	return t, nil
}

// devices returns all devices, members first.
func (s *service) devices() []Device {
	open := make(map[string]time.Time)
	if s.server != nil {
		open = s.server.Connections()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now, all := time.Now(), []Device{}
	for _, m := range s.ledger.Devices() {
		d := Device{Member: m}
		d.Revoked = d.Revoked || s.barred.has(m.ID)
		p, said := s.places[m.ID]
		if d.Seen = p.Seen; said && p.Seq < s.ledger.Seq() {
			d.Behind = s.ledger.Seq() - p.Seq
		} else if !said {
			d.Behind = s.ledger.Seq()
		}
		_, d.Connected = open[m.ID]
		if s.server == nil { // a cluster does not tell; devices report every minute
			d.Connected = said && now.Sub(p.Seen) < 2*time.Minute
		}
		if d.Connected && s.server != nil {
			d.Seen = now
		}
		d.InStep = d.Connected && d.Behind == 0 && said
		all = append(all, d)
	}
	slices.SortStableFunc(all, func(a, b Device) int {
		if a.Revoked != b.Revoked {
			if a.Revoked {
				return 1
			}
			return -1
		}
		return 0
	})
	return all
}

// member returns a member by its name or id.
func (s *service) member(name string) (ledger.Member, error) {
	var found []ledger.Member
	for _, m := range s.members() {
		if m.ID == name {
			found = []ledger.Member{m}
			break
		}
		if m.Name == name {
			found = append(found, m)
		}
	}
	switch len(found) {
	case 0:
		s.mu.Lock()
		was := slices.ContainsFunc(s.ledger.Devices(),
			func(m ledger.Member) bool { return m.Name == name || m.ID == name })
		s.mu.Unlock()
		if was {
			return ledger.Member{}, fmt.Errorf("the device %q is revoked already", name)
		}
		return ledger.Member{}, fmt.Errorf("there is no device %q; see faceauth fleet devices", name)
	case 1:
	default:
		return ledger.Member{}, fmt.Errorf("%d devices are named %q; give the id; faceauth fleet devices shows it",
			len(found), name)
	}
	return found[0], nil
}

// revoke revokes a device by its name or id.
func (s *service) revoke(ctx context.Context, name string) (ledger.Member, error) {
	m, err := s.member(name)
	if err != nil {
		return m, err
	}
	if _, err := s.say(ctx, ledger.Revoke, ledger.Revocation{Device: m.ID}); err != nil {
		return m, err
	}
	s.refresh()
	s.Log.Info("device revoked", "name", m.Name, "id", m.ID)
	return m, nil
}

// Admin is an administrator's connection to the running server of a fleet. [OpenAdmin] makes one; close it.
type Admin struct {
	names subjects
	key   nkeys.KeyPair
	nc    *nats.Conn
}

// OpenAdmin connects to the server with the given folder. KeyFile holds the admin key; if it is empty, the server's own
// key file is used. The error wraps [ErrNoServer] or [ErrOffline].
func OpenAdmin(ctx context.Context, folder, keyFile string) (*Admin, error) {
	b, err := safefile.ReadBytes(filepath.Join(folder, noteFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w in %s; run this on the machine, and as the user, that runs faceauth fleet serve",
			ErrNoServer, folder)
	}
	var note serverNote
	if err == nil {
		err = json.Unmarshal(b, &note)
	}
	if err != nil {
		return nil, fmt.Errorf("%w in %s: %s cannot be read (%v); restart faceauth fleet serve to write it again",
			ErrNoServer, folder, noteFile, err)
	}
	key, public, err := readAdminKey(cmp.Or(keyFile, note.Key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no admin key at %s; give its file with --admin-key", cmp.Or(keyFile, note.Key))
	}
	if err != nil {
		return nil, err
	}
	if public != note.Fleet {
		return nil, fmt.Errorf("%w: the key is of %s, and the server serves %s", ErrFleet, public, note.Fleet)
	}
	var login []nats.Option
	switch {
	case note.Creds != "":
		o, err := Creds(note.Creds)
		if err != nil {
			return nil, err
		}
		login = append(login, o)
	case len(note.Pin) > 0:
		login = append(login, nats.Nkey(public, key.Sign))
	}
	if len(note.Pin) > 0 {
		login = append(login, nats.Secure(pinned(note.Pin)))
	}
	nc, err := dial(ctx, note.URL, append(login, nats.NoReconnect(), nats.CustomInboxPrefix(inbox(public)))...)
	if errors.Is(err, ErrOffline) {
		return nil, fmt.Errorf("%w: the server does not run; start it: faceauth fleet serve", ErrOffline)
	}
	if err != nil {
		return nil, err
	}
	return &Admin{subjects{public}, key, nc}, nil
}

// Close ends the connection.
func (a *Admin) Close() error {
	a.nc.Close()
	return nil
}

// do sends a command to the server.
func (a *Admin) do(ctx context.Context, c command) (commandAnswer, error) {
	var answer commandAnswer
	c.Version, c.Time, c.Nonce = commandVersion, time.Now().UnixMilli(), make([]byte, 16)
	rand.Read(c.Nonce)
	body, err := cbor.Marshal(c)
	if err != nil {
		return answer, err
	}
	sig, err := a.key.Sign(commandText(a.names.fleet, body))
	if err != nil {
		return answer, err
	}
	text, err := cbor.Marshal(signedCommand{body, sig})
	if err != nil {
		return answer, err
	}
	reply, err := a.nc.RequestWithContext(ctx, a.names.admin(), text)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return answer, fmt.Errorf("%w: no service answers for this fleet; start faceauth fleet serve", ErrOffline)
	case err != nil && ctx.Err() != nil:
		return answer, fmt.Errorf(
			"%w: it does not answer in time; read the messages of faceauth fleet serve, and try again", ErrOffline)
	case err != nil:
		return answer, plain(err)
	}
	if err := strict.Unmarshal(reply.Data, &answer); err != nil {
		return answer, fmt.Errorf(
			"%w: its answer cannot be read; install the same version of faceauth on the device and the server",
			ErrCommand)
	}
	if answer.Refused != "" {
		return answer, fmt.Errorf("%w: %s", ErrCommand, printable(answer.Refused))
	}
	return answer, nil
}

// Invite returns a token that admits one device once, within the given time. People lists the numbers of the people
// that the device may read and write about; empty means all people.
func (a *Admin) Invite(ctx context.Context, lasts time.Duration, people []string) (Token, error) {
	answer, err := a.do(ctx, command{Op: opInvite, Lasts: int64(lasts / time.Second), People: people})
	if err != nil {
		return Token{}, err
	}
	return ParseToken(answer.Token)
}

// Devices returns the devices of the fleet, members first.
func (a *Admin) Devices(ctx context.Context) ([]Device, error) {
	all := []Device{}
	for {
		answer, err := a.do(ctx, command{Op: opDevices, Offset: len(all)})
		if err != nil {
			return nil, err
		}
		var part []Device
		if err := json.Unmarshal(answer.Devices, &part); err != nil {
			return nil, fmt.Errorf(
				"%w: its answer cannot be read; install the same version of faceauth on the device and the server",
				ErrCommand)
		}
		if all = append(all, part...); len(part) == 0 || len(all) >= answer.Total {
			return all, nil
		}
	}
}

// Revoke revokes a device by its name or id: its connection ends, its later entries do not count, and it gets no more
// keys. It returns the id.
func (a *Admin) Revoke(ctx context.Context, name string) (string, error) {
	answer, err := a.do(ctx, command{Op: opRevoke, Name: strings.TrimSpace(name)})
	return answer.ID, err
}

// Allow lets a device, by its name or id, forget [ledger.DailyForgets] people again. It returns the id.
func (a *Admin) Allow(ctx context.Context, name string) (string, error) {
	answer, err := a.do(ctx, command{Op: opAllow, Name: strings.TrimSpace(name)})
	return answer.ID, err
}
