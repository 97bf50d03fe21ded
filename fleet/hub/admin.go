// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/faceauth/faceauth/fleet"
	"github.com/faceauth/faceauth/internal/safefile"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// Device is a device of a fleet, as its server knows it.
type Device struct {
	fleet.Member
	State
	// Skipped says why other devices skip values of this one, by their ids.
	Skipped map[string]string `json:"skipped,omitempty"`
}

// State is what the server knows of a member besides the records.
type State struct {
	Connected bool          `json:"connected"`
	Seen      time.Time     `json:"seen,omitzero"` // the last time when it was connected, since the server started
	Status    *fleet.Status `json:"status,omitempty"`
	Bytes     uint64        `json:"bytes"`             // of its values
	Limited   string        `json:"limited,omitempty"` // why the server slows it down or drops its requests; "" if not
}

// Admin is a connection of an administrator to the running server of this machine. [OpenAdmin] makes one; close it.
type Admin struct {
	folder, fleet string
	key           *fleet.AdminKey // nil: it can only read
	nc            *nats.Conn
}

// OpenAdmin connects to the running server whose folder is given. Without a key only Devices and Alone can be used. The
// error wraps [ErrNoFleet], [ErrFolder], [ErrOther] or [ErrNoServer].
func OpenAdmin(ctx context.Context, folder string, key *fleet.AdminKey) (*Admin, error) {
	id, err := checkKey(folder, key)
	if err != nil {
		return nil, err
	}
	var n note
	data, err := safefile.ReadBytes(filepath.Join(folder, noteFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w; start it: faceauth fleet serve", ErrNoServer)
	}
	if err == nil {
		err = json.Unmarshal(data, &n)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w; start the server again", ErrFolder, filepath.Join(folder, noteFile), err)
	}
	a := &Admin{folder: folder, fleet: id, key: key}
	if n.Seed == "" {
		a.nc, err = dialCluster(n.URL, n.Creds)
	} else {
		a.nc, err = dialServer(n, id)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w; start it: faceauth fleet serve", ErrNoServer, err)
	}
	return a, ctx.Err()
}

// dialServer connects to the server of this machine.
func dialServer(n note, id string) (*nats.Conn, error) {
	key, err := nkeys.FromSeed([]byte(n.Seed))
	if err != nil {
		return nil, err
	}
	public, err := key.PublicKey()
	if err != nil {
		return nil, err
	}
	return nats.Connect(n.URL, nats.Nkey(public, key.Sign), nats.NoReconnect(), nats.Timeout(10*time.Second),
		nats.Secure(fleet.ServerTLS(id)))
}

// dialCluster connects to a cluster with the login in a file.
func dialCluster(url, creds string) (*nats.Conn, error) {
	o := []nats.Option{nats.Name("faceauth fleet serve"), nats.MaxReconnects(-1), nats.Timeout(10 * time.Second),
		nats.ReconnectWait(time.Second), nats.NoCallbacksAfterClientClose()}
	if creds != "" {
		login, err := fleet.Creds(creds)
		if err != nil {
			return nil, err
		}
		o = append(o, login)
	}
	nc, err := nats.Connect(url, o...)
	if errors.Is(err, nats.ErrAuthorization) {
		return nil, errors.New("the cluster refuses this service; check the file of --creds")
	} else if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	return nc, nil
}

// Close ends the connection.
func (a *Admin) Close() { a.nc.Close() }

// members reads the records.
func (a *Admin) members(ctx context.Context) (*fleet.Members, error) {
	m := fleet.NewMembers(a.fleet)
	err := pull(ctx, a.nc, admin, func(v fleet.Stored) error {
		_, _, err := m.Add(v.Data)
		if errors.Is(err, fleet.ErrRecord) {
			return nil // the log of the server names it
		}
		return err
	})
	return m, err
}

// Devices returns the devices that were ever admitted.
func (a *Admin) Devices(ctx context.Context) ([]Device, error) {
	m, err := a.members(ctx)
	if err != nil {
		return nil, err
	}
	known := make(map[string]State)
	for last := ""; ; {
		answer, err := a.nc.RequestWithContext(ctx, listSubject, []byte(last))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoServer, err)
		}
		var some map[string]State
		if err := json.Unmarshal(answer.Data, &some); err != nil {
			return nil, fmt.Errorf("%w: %s", ErrCommand, answer.Data)
		}
		if len(some) == 0 {
			break
		}
		for id, x := range some {
			known[id], last = x, max(last, id)
		}
	}
	skipped := make(map[string]map[string]string)
	for id, x := range known {
		if x.Status == nil {
			continue
		}
		for author, why := range x.Status.Refused {
			if skipped[author] == nil {
				skipped[author] = make(map[string]string)
			}
			skipped[author][id] = why
		}
	}
	var all []Device
	for _, x := range m.Devices() {
		all = append(all, Device{x, known[x.ID], skipped[x.ID]})
	}
	return all, nil
}

// find returns the device with an id or name. A revoked device counts only if no other one has the name.
func (a *Admin) find(ctx context.Context, who string) (fleet.Member, error) {
	m, err := a.members(ctx)
	if err != nil {
		return fleet.Member{}, err
	}
	if x, known := m.Device(who); known {
		return x, nil
	}
	var found, gone []fleet.Member
	for _, x := range m.Devices() {
		switch {
		case x.Name != who:
		case x.Revoked:
			gone = append(gone, x)
		default:
			found = append(found, x)
		}
	}
	if len(found) == 0 {
		found = gone
	}
	switch len(found) {
	case 0:
		return fleet.Member{}, fmt.Errorf("%w: %q; for a list: faceauth fleet devices", ErrDevice, who)
	case 1:
		return found[0], nil
	}
	return fleet.Member{}, fmt.Errorf("%w: %d devices have the name %q; give the id: faceauth fleet devices", ErrDevice,
		len(found), who)
}

// Alone returns the values of a device about people of whom no other member says anything: their counters, by name. Its
// first 32 characters are the number of the person. Who is the name or id of the device.
func (a *Admin) Alone(ctx context.Context, who string) (map[string]uint64, error) {
	x, err := a.find(ctx, who)
	if err != nil {
		return nil, err
	}
	m, err := a.members(ctx)
	if err != nil {
		return nil, err
	}
	alone := make(map[string]uint64)
	others := make(map[string]bool)
	for _, member := range m.Devices() {
		if member.Revoked && member.ID != x.ID {
			continue
		}
		err := pull(ctx, a.nc, member.ID, func(v fleet.Stored) error {
			switch n := fleet.ValueCounter(v.Data); {
			case len(v.Name) < 32 || strings.HasPrefix(v.Name, "_") || n == 0:
			case v.Writer == x.ID:
				alone[v.Name] = n
			default:
				others[v.Name[:32]] = true
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	for name := range alone {
		if others[name[:32]] {
			delete(alone, name)
		}
	}
	return alone, nil
}

// Revoke removes a device for ever, and all that it said except the values in keep, with their counters; see
// [Admin.Alone]. Who is its name or id. The result is its id.
func (a *Admin) Revoke(ctx context.Context, who string, keep map[string]uint64) (string, error) {
	return a.tell(ctx, who, func(id string) ([]byte, error) { return a.key.Revoke(id, keep, time.Now()) })
}

// Allow lets a device forget any number of people, from a day ago to an hour from now. Who is its name or id. The
// result is its id.
func (a *Admin) Allow(ctx context.Context, who string) (string, error) {
	return a.tell(ctx, who, func(id string) ([]byte, error) { return a.key.Allow(id, time.Now()) })
}

func (a *Admin) tell(ctx context.Context, who string, record func(id string) ([]byte, error)) (string, error) {
	if a.key == nil {
		return "", fmt.Errorf("%w: it is needed for this", fleet.ErrAdmin)
	}
	x, err := a.find(ctx, who)
	if err != nil {
		return "", err
	}
	r, err := record(x.ID)
	if err != nil {
		return "", err
	}
	return x.ID, a.give(ctx, r)
}

// give sends a record to the server.
func (a *Admin) give(ctx context.Context, r []byte) error {
	m, err := a.nc.RequestWithContext(ctx, fleet.GivePrefix+admin, r)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoServer, err)
	}
	if len(m.Data) > 0 {
		return fmt.Errorf("%w: %s", ErrCommand, m.Data)
	}
	return nil
}

// Move gives a server a new address and a new certificate: after its data were copied to another machine, or from a
// backup. The server in the folder may run. Devices that are connected learn the address; others are told by: faceauth
// fleet join.
func Move(ctx context.Context, folder string, key *fleet.AdminKey, url string) error {
	if _, err := checkKey(folder, key); err != nil {
		return err
	}
	if err := setAddress(folder, key, url); err != nil {
		return err
	}
	a, err := OpenAdmin(ctx, folder, key)
	if errors.Is(err, ErrNoServer) {
		return nil // it reads the files when it starts
	}
	if err != nil {
		return err
	}
	defer a.Close()
	r, err := safefile.ReadBytes(filepath.Join(folder, addressFile))
	if err != nil {
		return err
	}
	return a.give(ctx, r)
}
