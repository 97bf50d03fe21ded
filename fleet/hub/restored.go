// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/fleet/ledger"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/fxamacker/cbor/v2"
	"github.com/nats-io/nats.go"
)

// ErrLost is returned by [Serve] if there was a fleet and its log is gone.
var ErrLost = errors.New("the log of the fleet is gone")

var _ fleet.Restorer = (*Conn)(nil)

// logText is the description of the stream. If the log was put back, the encoded entry of the restoration follows.
const logText = "the log of a faceauth fleet"

func describe(restoration []byte) string {
	if restoration == nil {
		return logText
	}
	return logText + ", put back " + base64.RawURLEncoding.EncodeToString(restoration)
}

// described returns the entry in a description. Anybody may have written it: check the signature.
func described(text string) []byte {
	_, text, _ = strings.Cut(text, ", put back ")
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) == 0 {
		return nil
	}
	return b
}

// Bind implements [fleet.Restorer].
func (c *Conn) Bind(ctx context.Context) (context.Context, context.CancelFunc, error) {
	return c.ready(ctx)
}

// Restored implements [fleet.Restorer].
func (c *Conn) Restored(ctx context.Context) ([]byte, error) {
	ctx, cancel, err := c.ready(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	stream, err := c.js.Stream(ctx, c.names.stream())
	if err != nil {
		return nil, c.noLog(cause(ctx, err))
	}
	return described(stream.CachedInfo().Config.Description), nil
}

// RejoinToken is the NATS token of a connection that is only for [Conn.Rejoin]. It is not a secret.
const RejoinToken = "rejoin"

const rejoinVersion = 1

// rejoinRequest holds entries that the admin key has signed. The request itself needs no signature.
type rejoinRequest struct {
	Version int      `cbor:"1,keyasint"`
	Device  string   `cbor:"2,keyasint"`
	Entries [][]byte `cbor:"3,keyasint"`
	Last    bool     `cbor:"4,keyasint"` // the last request
}

type rejoinAnswer struct {
	Version int    `cbor:"1,keyasint"`
	Refused string `cbor:"2,keyasint,omitempty"`
	Revoked []byte `cbor:"3,keyasint,omitempty"` // the entry that revoked the device
}

// rejoinPart is the size of the entries in one request, in bytes, if there are several requests.
const rejoinPart = 256 << 10

// Rejoin implements [fleet.Restorer]. It opens a separate connection.
func (c *Conn) Rejoin(ctx context.Context, entries [][]byte) error {
	if c.dialAgain == nil {
		return errors.ErrUnsupported
	}
	nc, err := c.dialAgain(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	for more := true; more; {
		n, size := 0, 0
		for n < len(entries) && (n == 0 || size+len(entries[n]) <= rejoinPart) {
			size += len(entries[n])
			n++
		}
		request := rejoinRequest{Version: rejoinVersion, Device: c.id, Entries: entries[:n], Last: n == len(entries)}
		entries, more = entries[n:], !request.Last
		text, err := cbor.Marshal(request)
		if err != nil {
			return err
		}
		reply, err := nc.RequestWithContext(ctx, c.names.rejoin(), text)
		switch {
		case errors.Is(err, nats.ErrNoResponders):
			return fmt.Errorf("%w: no service answers for this fleet; start faceauth fleet serve", ErrOffline)
		case err != nil:
			return cause(ctx, err)
		}
		var answer rejoinAnswer
		if err := strict.Unmarshal(reply.Data, &answer); err != nil || answer.Version != rejoinVersion {
			return fmt.Errorf(
				"%w: its answer cannot be read; install the same version of faceauth on the device and the server",
				ErrDenied)
		}
		if answer.Revoked != nil && ledger.CheckRevocation(c.names.fleet, c.id, answer.Revoked) == nil {
			return fleet.ErrRevoked
		}
		if answer.Refused != "" {
			return fmt.Errorf("%w: %s", ErrDenied, printable(answer.Refused))
		}
	}
	if c.Err() != nil {
		c.nc.ForceReconnect() // the server now lets it in, so do not wait for the next try
	}
	return nil
}

// continueLog starts a new log at the present end if the administrator says that the log was put back. It also keeps
// the newest restoration in the description of the stream.
func (s *service) continueLog(ctx context.Context, last uint64) error {
	config := s.stream.CachedInfo().Config
	inStream := described(config.Description)
	newest, err := ledger.ParseRestoration(s.names.fleet, inStream)
	if err != nil {
		newest, inStream = ledger.Restoration{}, nil
	}
	s.mu.Lock()
	epoch := s.ledger.Epoch()
	data, err := s.ledger.Restoration()
	s.mu.Unlock()
	if err != nil {
		return err
	}
	if newest.Epoch > epoch { // the service was killed before the log had the entry
		data = inStream
	}
	if s.Restored {
		// The clock makes the number unique, even if the same backup is put back twice.
		newest = ledger.Restoration{Epoch: max(epoch, newest.Epoch) + 1, Before: epoch, At: last}
		if now := time.Now().Unix(); now > 0 {
			newest.Epoch = max(newest.Epoch, uint64(now))
		}
		e := ledger.Entry{N: newest.Counter(), Time: time.Now(), Kind: ledger.Restored}
		e.Put(newest)
		if err := e.Sign(s.names.fleet, s.admin); err != nil {
			return err
		}
		data = e.Encode()
		// A token may have been used since the backup: it must not admit a second device.
		err := s.tokens.change(time.Now(), func(all map[string]invitation) error {
			for key, i := range all {
				if i.Device == "" {
					delete(all, key)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if data == nil {
		return nil
	}
	if text := describe(data); text != config.Description {
		config.Description = text
		if s.stream, err = s.conn.js.UpdateStream(ctx, config); err != nil {
			return storage(err)
		}
	}
	if epoch >= newest.Epoch {
		return nil
	}
	if err := s.conn.Append(ctx, "", data); err != nil {
		return err
	}
	if last, err = s.conn.Last(ctx); err != nil {
		return err
	}
	if err := s.readTo(ctx, last); err != nil {
		return err
	}
	s.Log.Info("the log continues from its present end; devices give back the lost entries", "entries", last)
	return nil
}

func (s *service) epoch() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.Epoch()
}

// checkLost returns an error if there was a fleet and its log is gone.
func (s *service) checkLost(last uint64) error {
	if s.Restored || last > 0 || s.known && len(s.places) == 0 { // devices that have read something have places
		return nil
	}
	return fmt.Errorf(
		"%w: the admin key %s exists, and the log is empty; if the disk was lost or a backup was put back, "+
			"start the server once with: "+
			"faceauth fleet serve --restored; for a new fleet choose another folder and another admin key",
		ErrLost,
		s.AdminKey,
	)
}

// barred holds revocations that the log has lost and that a device has shown. The revoked devices are not let in. Later
// the log itself has the revocation again. The caller of its methods holds the service's mutex.
type barred struct {
	path    string
	entries map[string][]byte // by device
}

var barredKind = safefile.Kind{Magic: "faceauth barred", Version: 1}

func openBarred(path string) (*barred, error) {
	b := &barred{path: path, entries: make(map[string][]byte)}
	text, err := safefile.ReadSealed(path, barredKind)
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &b.entries)
	}
	if err != nil {
		return nil, fmt.Errorf(
			"%s: %w; remove the file, and revoke again the devices that were revoked since the backup", path, err)
	}
	return b, nil
}

func (b *barred) add(device string, data []byte) error {
	b.entries[device] = bytes.Clone(data)
	text, err := json.Marshal(b.entries)
	if err == nil {
		err = safefile.WriteSealed(b.path, barredKind, text)
	}
	if err != nil {
		return fmt.Errorf("a revocation cannot be written: %w", err)
	}
	return nil
}

// has reports whether there is a revocation of a device.
func (b *barred) has(device string) bool { return b.entries[device] != nil }

// rejoin checks and stores the admissions and revocations that a device shows.
func (s *service) rejoin(ctx context.Context, data []byte) rejoinAnswer {
	answer := rejoinAnswer{Version: rejoinVersion}
	var r rejoinRequest
	if strict.Unmarshal(data, &r) != nil || r.Version != rejoinVersion {
		answer.Refused = "the request cannot be read; install the same version of faceauth on the device and the server"
		return answer
	}
	data, err := s.revocation(r.Device)
	if err != nil {
		answer.Refused = err.Error()
		return answer
	}
	if data != nil {
		answer.Refused, answer.Revoked = "the device was revoked", data
		return answer
	}
	if s.epoch() == 0 {
		answer.Refused = "the log of this server was never put back: it has all admissions"
		return answer
	}
	ctx, cancel := context.WithTimeout(ctx, sayTime)
	defer cancel()
	for _, entry := range r.Entries {
		if err := s.takeBack(ctx, entry); err != nil {
			answer.Refused = err.Error()
			return answer
		}
	}
	if r.Last && !s.isMember(r.Device) {
		answer.Refused = "the device was revoked, or shows no admission to this fleet; " +
			"remove its folder, and join with a new token"
	}
	return answer
}

func (s *service) isMember(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.ledger.Device(id)
	return known && !s.isOut(id)
}

// takeBack takes one entry of the admin key: an admitted device is a member again, and a revoked device is not let in.
func (s *service) takeBack(ctx context.Context, data []byte) error {
	e, err := ledger.Parse(data)
	if err != nil {
		return err
	}
	content, err := e.Content()
	if err != nil {
		return err
	}
	switch c := content.(type) {
	case ledger.Revocation:
		if s.isRevoked(c.Device) {
			return nil
		}
		if err := e.Verify(s.names.fleet); err != nil {
			return err
		}
		s.mu.Lock()
		err := s.barred.add(c.Device, data)
		s.mu.Unlock()
		if err != nil {
			return err
		}
		s.Log.Info("a device was revoked after the backup, and is not let in", "id", c.Device)
		s.refresh()
		return nil
	case ledger.Admission:
		s.mu.Lock()
		_, known := s.ledger.Device(c.Device)
		known = known || s.barred.has(c.Device)
		s.mu.Unlock()
		if known {
			return nil
		}
		if err := e.Verify(s.names.fleet); err != nil {
			return err
		}
		if err := s.conn.Append(ctx, "", data); err != nil {
			return err
		}
		s.Log.Info("a device is a member again", "name", c.Name, "id", c.Device)
		return s.waitApplied(ctx, func() bool { _, known := s.ledger.Device(c.Device); return known })
	}
	return fmt.Errorf("%w: a %s is neither an admission nor a revocation", ledger.ErrContent, e.Kind)
}

// waitApplied waits until is returns true. Is is called with the mutex held.
func (s *service) waitApplied(ctx context.Context, is func() bool) error {
	for {
		s.mu.Lock()
		done, applied := is(), s.applied
		s.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-applied:
		case <-ctx.Done():
			return fmt.Errorf("%w: the entry was sent and has not come back in the log yet; try again", ErrOffline)
		}
	}
}
