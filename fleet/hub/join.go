// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/fleet/ledger"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/fxamacker/cbor/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// Errors of [Join] and [Open].
var (
	// ErrJoined is returned for a folder that belongs to a fleet already.
	ErrJoined = errors.New("this device belongs to a fleet already")
	// ErrDenied is wrapped if the server has refused this device; the error has the server's reason.
	ErrDenied = errors.New("the server of the fleet does not admit this device")
	// ErrName is returned for an invalid name of a device.
	ErrName = errors.New("unusable name of a device")
)

// Member is a device's record of its fleet.
type Member struct {
	Fleet string       `json:"fleet"`
	URL   string       `json:"url"`
	Pin   []byte       `json:"pin,omitempty"`
	Creds string       `json:"creds,omitempty"` // file with the device's login for a cluster
	Name  string       `json:"name"`
	ID    string       `json:"id"`
	Scope ledger.Scope `json:"scope"`
	Since time.Time    `json:"since"` // by the server's clock
	// Skew is how far the clock of this device is ahead of the server's. It is only for a warning.
	Skew time.Duration `json:"-"`

	key nkeys.KeyPair
}

// memberFile is the file in a device's folder with its [Member].
const memberFile = "hub"

var memberKind = safefile.Kind{Magic: "faceauth fleet", Version: 1}

// Joining holds the settings of [Join].
type Joining struct {
	URL   string // replaces the token's URL, if this device reaches the server at another address
	Name  string // a name for people; unique in the fleet
	Creds string // file with the device's login for a cluster
}

// CheckName returns nil for a valid name of a device. The error wraps [ErrName].
func CheckName(name string) error {
	if name == "" || len(name) > 64 || !utf8.ValidString(name) || strings.TrimSpace(name) != name ||
		strings.ContainsFunc(name,
			func(r rune) bool { return !unicode.IsPrint(r) }) || nkeys.IsValidPublicUserKey(name) {
		return fmt.Errorf("%w: %q; use 1 to 64 printable bytes, and no space at the ends", ErrName, name)
	}
	return nil
}

// joinVersion is the version of the request and the answer.
const joinVersion = 1

// joinRequest is a request to join. The token's key and the device's key sign it, so that nobody else can make it, and
// it is valid for this device only.
type joinRequest struct {
	Version int    `cbor:"1,keyasint"`
	Token   string `cbor:"2,keyasint"` // public key of the token
	Device  string `cbor:"3,keyasint"`
	Name    string `cbor:"4,keyasint"`
	Time    int64  `cbor:"5,keyasint"`
}

type signedJoin struct {
	Request  []byte `cbor:"1,keyasint"`
	ByToken  []byte `cbor:"2,keyasint"`
	ByDevice []byte `cbor:"3,keyasint"`
}

// joinAnswer is the server's answer.
type joinAnswer struct {
	Version   int    `cbor:"1,keyasint"`
	Refused   string `cbor:"2,keyasint,omitempty"` // the reason; empty if admitted
	Time      int64  `cbor:"3,keyasint"`           // of the server
	Admission []byte `cbor:"4,keyasint,omitempty"` // the entry of the log
}

// joinText returns the signed bytes of a request.
func joinText(fleetID string, request []byte) []byte {
	return append([]byte("faceauth fleet join 1\n"+fleetID+"\n"), request...)
}

// Join makes the device of a folder a member of the token's fleet. After a failure it can be tried again with the same
// token: a token that this device has used admits it once more.
//
// The error wraps [ErrJoined], [ErrDenied], [ErrName], [ErrOffline], [ErrPin] or [ErrToken], or comes from the disk.
func Join(ctx context.Context, folder string, t Token, j Joining) (*Member, error) {
	if err := CheckName(j.Name); err != nil {
		return nil, err
	}
	address := t.URL
	if j.URL != "" {
		if err := CheckURL(j.URL); err != nil {
			return nil, err
		}
		address = j.URL
	}
	if m, err := Open(folder); err == nil {
		if m.Fleet == t.Fleet {
			return nil, fmt.Errorf("%w: it has been %q of this fleet since %s; there is nothing to do", ErrJoined,
				m.Name, m.Since.Local().Format("2006-01-02 15:04"))
		}
		return nil, fmt.Errorf(
			"%w: %s belongs to another fleet; give another folder with --state, or remove this folder first", ErrJoined,
			folder)
	} else if !errors.Is(err, fleet.ErrNotJoined) {
		return nil, err
	}
	if j.Creds != "" {
		path, err := filepath.Abs(j.Creds)
		if err != nil {
			return nil, err
		}
		j.Creds = path
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	if _, err := fleet.Identity(folder); err != nil {
		return nil, err
	}
	key, err := fleet.Identity(folder) // read it again, so that the admitted key is surely the one on disk
	if err != nil {
		return nil, err
	}
	m, err := ask(ctx, address, t, j, key)
	if err != nil {
		return nil, err
	}
	// If the program ends between these two writes, joining again writes the second.
	if err := fleet.Join(folder, t.Fleet); err != nil {
		return nil, err
	}
	b, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	if err := safefile.WriteSealed(filepath.Join(folder, memberFile), memberKind, b); err != nil {
		return nil, err
	}
	return m, nil
}

// ask asks the server to admit this device, and checks the answer.
func ask(ctx context.Context, address string, t Token, j Joining, key nkeys.KeyPair) (*Member, error) {
	bearer, err := t.key()
	if err != nil {
		return nil, ErrToken
	}
	request := joinRequest{Version: joinVersion, Name: j.Name, Time: time.Now().UnixMilli()}
	if request.Token, err = bearer.PublicKey(); err != nil {
		return nil, err
	}
	if request.Device, err = key.PublicKey(); err != nil {
		return nil, err
	}
	body, err := cbor.Marshal(request)
	if err != nil {
		return nil, err
	}
	signed := signedJoin{Request: body}
	if signed.ByToken, err = bearer.Sign(joinText(t.Fleet, body)); err != nil {
		return nil, err
	}
	if signed.ByDevice, err = key.Sign(joinText(t.Fleet, body)); err != nil {
		return nil, err
	}
	text, err := cbor.Marshal(signed)
	if err != nil {
		return nil, err
	}
	login, box := nats.Nkey(request.Token, bearer.Sign), inbox(request.Token)
	if j.Creds != "" {
		if login, err = Creds(j.Creds); err != nil {
			return nil, err
		}
		box = inbox(request.Device)
	}
	options := []nats.Option{login, nats.CustomInboxPrefix(box), nats.NoReconnect()}
	if len(t.Pin) > 0 {
		options = append(options, nats.Secure(pinned(t.Pin)))
	}
	names := subjects{t.Fleet}
	nc, err := dial(ctx, address, options...)
	if errors.Is(err, ErrRefused) {
		return nil, fmt.Errorf(
			"%w: it does not know this token: the token is of another fleet, or older than a month; "+
				"ask for a new one: faceauth fleet invite",
			ErrDenied,
		)
	}
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	reply, err := nc.RequestWithContext(ctx, names.join(), text)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return nil, fmt.Errorf("%w: no service answers for this fleet at %s; start faceauth fleet serve", ErrOffline,
			address)
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("%w: it does not answer in time; try again", ErrOffline)
	case err != nil:
		return nil, plain(err)
	}
	now := time.Now()
	var answer joinAnswer
	if err := strict.Unmarshal(reply.Data, &answer); err != nil || answer.Version != joinVersion {
		return nil, fmt.Errorf(
			"%w: its answer cannot be read; install the same version of faceauth on the device and the server",
			ErrDenied)
	}
	skew := now.Sub(time.UnixMilli(answer.Time))
	if answer.Refused != "" {
		return nil, fmt.Errorf("%w: %s%s", ErrDenied, printable(answer.Refused), aboutClock(skew))
	}
	admission, at, err := admission(t.Fleet, answer.Admission)
	if err != nil || admission.Device != request.Device {
		return nil, fmt.Errorf("%w: its answer is not signed by the key of the fleet that the token names; "+
			"ask for a new token, and compare its fleet with that of the server: faceauth fleet invite", ErrDenied)
	}
	return &Member{
		Fleet: t.Fleet, URL: address, Pin: t.Pin, Creds: j.Creds, Name: admission.Name, ID: request.Device,
		Scope: admission.Scope,
		Since: at, Skew: skew, key: key,
	}, nil
}

// clockTolerance is the difference of clocks from which on the user is warned.
const clockTolerance = 2 * time.Minute

// aboutClock returns a warning about a wrong clock, or "".
func aboutClock(skew time.Duration) string {
	switch {
	case skew > clockTolerance:
		return fmt.Sprintf(" (the clock of this device is %v ahead of the server's: one of them is wrong)",
			skew.Round(time.Minute))
	case skew < -clockTolerance:
		return fmt.Sprintf(" (the clock of this device is %v behind the server's: one of them is wrong)",
			(-skew).Round(time.Minute))
	}
	return ""
}

// ClockWarning returns a sentence if the clocks of this device and the server differ, or "".
func (m *Member) ClockWarning() string {
	if s := aboutClock(m.Skew); s != "" {
		return strings.Trim(s, " ()")
	}
	return ""
}

// printable returns the first 500 bytes of a server's text, without control characters.
func printable(s string) string {
	s = strings.ToValidUTF8(s[:min(len(s), 500)], "?")
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
}

// admission returns the admission in an entry and its time, after a check of the fleet's signature.
func admission(fleetID string, data []byte) (ledger.Admission, time.Time, error) {
	e, err := ledger.Parse(data)
	if err == nil {
		err = e.Verify(fleetID)
	}
	if err == nil && (e.Kind != ledger.Admit || e.Device != fleetID) {
		err = ledger.ErrSignature
	}
	if err != nil {
		return ledger.Admission{}, time.Time{}, err
	}
	content, err := e.Content()
	if err != nil {
		return ledger.Admission{}, time.Time{}, err
	}
	a, ok := content.(ledger.Admission)
	if !ok {
		return ledger.Admission{}, time.Time{}, ledger.ErrContent
	}
	return a, e.Time, nil
}

// Open reads a device's record of its fleet. The error wraps [fleet.ErrNotJoined] or [fleet.ErrDamaged].
func Open(folder string) (*Member, error) {
	path := filepath.Join(folder, memberFile)
	b, err := safefile.ReadSealed(path, memberKind)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w (%s has no fleet); run: faceauth fleet join --token TOKEN", fleet.ErrNotJoined,
			folder)
	case errors.Is(err, safefile.ErrDamaged), errors.Is(err, safefile.ErrVersion):
		return nil, fmt.Errorf("%w: %s: %w; remove it and join again with a new token", fleet.ErrDamaged, path, err)
	case err != nil:
		return nil, err
	}
	m := &Member{}
	if err := json.Unmarshal(b, m); err != nil || CheckURL(m.URL) != nil || !nkeys.IsValidPublicAccountKey(m.Fleet) {
		return nil, fmt.Errorf("%w: %s cannot be read; remove it and join again with a new token", fleet.ErrDamaged,
			path)
	}
	if m.key, err = fleet.Identity(folder); err != nil {
		return nil, err
	}
	if id, err := m.key.PublicKey(); err != nil || id != m.ID {
		return nil, fmt.Errorf(
			"%w: the key in %s is not the admitted key; put back a copy of it, or remove the folder and join again",
			fleet.ErrDamaged, folder)
	}
	return m, nil
}

// Connect returns the connection of this device to its fleet. Changed is called as in [Settings]; it may be nil.
func (m *Member) Connect(changed func(error)) (*Conn, error) {
	return Connect(Settings{URL: m.URL, Fleet: m.Fleet, Pin: m.Pin, Key: m.key, Creds: m.Creds, Changed: changed})
}
